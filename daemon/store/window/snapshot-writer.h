/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A snapshot on its way to the disk: samples and the side-band they need, in frames. */

#include "perfdata/record/event-union.h"
#include "perfdata/writer/writer.h"
#include "store/window/window.h"

enum { SNAPSHOT_WRITER_FILES_MAX = 8 };

typedef struct SnapshotWriterOptions {
    Layout layout;
    int zstd_level;
    unsigned n_files; /* data.N of a folder */
    bool keep_frames; /* what is wanted as a whole stays as it was compressed */
} SnapshotWriterOptions;

typedef struct SnapshotWriter {
    SnapshotWriterOptions options;
    PdWriter *writer;
    struct {
        Buffer records;
        PdSpan span;
        size_t before; /* what the frame that is being taken came behind */
        PdSpan span_before;
    } gathered[SNAPSHOT_WRITER_FILES_MAX];
    bool in_frame;
    uint64_t samples, first_ns, last_ns;
    uint64_t raw_bytes;
    uint64_t greatest_ns;               /* time written so far */
    uint64_t round_ns, round_raw_bytes; /* the same at the last FINISHED_ROUND */
} SnapshotWriter;

int snapshot_writer_open(SnapshotWriter *writer, int fd, const SnapshotWriterOptions *options,
                         const PdEvents *events);
void snapshot_writer_done(SnapshotWriter *writer);
/* A sample, or what else came with samples (`is_sample` false). */
int snapshot_writer_add(SnapshotWriter *writer, Buffer *side_band, const PdRecord *record,
                        const PdStamp *stamp);
/* Between the two come the records of one frame. Where all of them did, unchanged and for one file,
 * it goes on as it is: `packed`, which holds `raw` bytes. */
void snapshot_writer_begin_frame(SnapshotWriter *writer);
int snapshot_writer_end_frame(SnapshotWriter *writer, Buffer *side_band, Bytes packed,
                              uint64_t raw);
/* A record that belongs to no CPU's samples. */
int snapshot_writer_add_plain(SnapshotWriter *writer, const PdRecord *record, uint64_t time);
/* On the disk so far. */
uint64_t snapshot_writer_bytes(const SnapshotWriter *writer);
/* Writes what is gathered, side-band first, which is then empty. */
int snapshot_writer_flush(SnapshotWriter *writer, Buffer *side_band);
/* All that is to come is not older than that. */
int snapshot_writer_end_group(SnapshotWriter *writer, Buffer *side_band, uint64_t least_ns);

/* What a segment says of its host. */
int snapshot_writer_carry_features(SnapshotWriter *writer, PdReader *reader);
/* Names, groups, tracepoints, clock, coverage; then the end. */
int snapshot_writer_finish(SnapshotWriter *writer, const PdEvents *events, Bytes tracing,
                           const ClockAnchor *clock, const PdCoverage *coverage);
