/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes a snapshot to the disk: samples and the side-band that they need, in frames. */

#include "perfdata/record/event-union.h"
#include "perfdata/writer/writer.h"
#include "store/window/window.h"

enum { SNAPSHOT_WRITER_FILES_MAX = 8 };

typedef struct SnapshotWriterOptions {
    Layout layout;
    int zstd_level;
    unsigned n_files; /* data.N of a folder */
    bool keep_frames; /* frames that are wanted as a whole keep their compression */
} SnapshotWriterOptions;

typedef struct SnapshotWriter {
    SnapshotWriterOptions options;
    PdWriter *writer;
    struct {
        Buffer records;
        PdSpan span;
        size_t before; /* how much had been gathered before the current frame */
        PdSpan span_before;
    } gathered[SNAPSHOT_WRITER_FILES_MAX];
    bool in_frame;
    uint64_t samples, first_ns, last_ns;
    uint64_t raw_bytes;
    uint64_t greatest_ns;               /* the latest time written so far */
    uint64_t round_ns, round_raw_bytes; /* the same at the last FINISHED_ROUND */
} SnapshotWriter;

int snapshot_writer_open(SnapshotWriter *writer, int fd, const SnapshotWriterOptions *options,
                         const PdEvents *events);
void snapshot_writer_done(SnapshotWriter *writer);
/* Adds a sample, or another record from a frame of samples (`is_sample` false). */
int snapshot_writer_add(SnapshotWriter *writer, Buffer *side_band, const PdRecord *record,
                        const PdStamp *stamp);
/* The records of one frame are added between these calls. If all of them were added, unchanged and
 * to one file, the frame is copied as it is: `packed`, which holds `raw` bytes. */
void snapshot_writer_begin_frame(SnapshotWriter *writer);
int snapshot_writer_end_frame(SnapshotWriter *writer, Buffer *side_band, Bytes packed,
                              uint64_t raw);
/* Adds a record that does not belong to the samples of a CPU. */
int snapshot_writer_add_plain(SnapshotWriter *writer, const PdRecord *record, uint64_t time);
/* The bytes written to the disk so far. */
uint64_t snapshot_writer_bytes(const SnapshotWriter *writer);
/* Writes what is gathered, side-band first, and clears side_band. */
int snapshot_writer_flush(SnapshotWriter *writer, Buffer *side_band);
/* Ends a group: no later record is older than least_ns. */
int snapshot_writer_end_group(SnapshotWriter *writer, Buffer *side_band, uint64_t least_ns);

/* Copies what a segment says about its host. */
int snapshot_writer_carry_features(SnapshotWriter *writer, PdReader *reader);
/* Writes names, groups, tracepoints, clock and coverage, and finishes the recording. */
int snapshot_writer_finish(SnapshotWriter *writer, const PdEvents *events, Bytes tracing,
                           const ClockAnchor *clock, const PdCoverage *coverage);
