/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files behind segment.h share; nobody else includes it. */

#include "perfdata/writer/writer.h"
#include "store/segment/segment.h"

typedef enum Stage {
    STAGE_WRITER,
    STAGE_SYNC,
    STAGE_SEAL,
    STAGE_MANIFEST,
    STAGE_RENAME,
    STAGE_FOLDER,
    STAGE_DONE,
} Stage;

struct Segment {
    SegmentContext context;
    SegmentPlan *plan;
    int folder;
    int fd; /* the file, or the segment's own folder */
    PdWriter *writer;
    Manifest *manifest;
    uint64_t sample_weight;
    ManifestFrame open[1 + SEGMENT_FILES_MAX]; /* .raw 0: none */
    Stage stage;
    bool ended; /* the last anchor is set */
};

/* Ends the frames that are open, and so makes entries of them. */
int segment_end_frames(Segment *segment);
/* Keeps the moment where a clock moved since the last one, or `always`. */
int segment_note_clock(Segment *segment, const ClockAnchor *clock, bool always);
