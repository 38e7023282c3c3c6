/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A snapshot on its way to the disk: samples and the side-band they need, in frames. */

#include "perfdata/record/event-union.h"
#include "perfdata/writer/writer.h"
#include "store/window/window.h"

enum { OUTLET_FILES_MAX = 8 };

typedef struct OutletOptions {
    Layout layout;
    int zstd_level;
    unsigned n_files; /* data.N of a folder */
    bool keep_frames; /* what is wanted as a whole stays as it was compressed */
} OutletOptions;

typedef struct Outlet {
    OutletOptions options;
    PdWriter *writer;
    struct {
        Buffer records;
        PdSpan span;
        size_t before; /* what the frame that is being taken came behind */
        PdSpan span_before;
    } gathered[OUTLET_FILES_MAX];
    bool in_frame;
    uint64_t samples, first_ns, last_ns;
    uint64_t raw_bytes;
    uint64_t greatest_ns;               /* time written so far */
    uint64_t round_ns, round_raw_bytes; /* the same at the last FINISHED_ROUND */
} Outlet;

int outlet_open(Outlet *output, int fd, const OutletOptions *options, const PdEvents *events);
void outlet_done(Outlet *output);
/* A sample, or what else came with samples (`is_sample` false). */
int outlet_add(Outlet *output, Buffer *side_band, const PdRecord *record, const PdStamp *stamp);
/* Between the two come the records of one frame. Where all of them did, unchanged and for one file,
 * it goes on as it is: `packed`, which holds `raw` bytes. */
void outlet_begin_frame(Outlet *output);
int outlet_end_frame(Outlet *output, Buffer *side_band, Bytes packed, uint64_t raw);
/* A record that belongs to no CPU's samples. */
int outlet_add_plain(Outlet *output, const PdRecord *record, uint64_t time);
/* On the disk so far. */
uint64_t outlet_bytes(const Outlet *output);
/* Writes what is gathered, side-band first, which is then empty. */
int outlet_flush(Outlet *output, Buffer *side_band);
/* All that is to come is not older than that. */
int outlet_end_group(Outlet *output, Buffer *side_band, uint64_t least_ns);

/* What a segment says of its host. */
int outlet_carry_features(Outlet *output, PdReader *reader);
/* Names, groups, tracepoints, clock, coverage; then the end. */
int outlet_finish(Outlet *output, const PdEvents *events, Bytes tracing, const ClockAnchor *clock,
                  const PdCoverage *coverage);
