/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files behind segment.h share; no other file includes it. */

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
    ManifestFrame open[1 + SEGMENT_FILES_MAX]; /* .raw is 0: no frame is open */
    uint64_t ends[1 + SEGMENT_FILES_MAX];      /* of each file, after the last sweep */
    Stage stage;
    bool ended; /* the last anchor is set */
};

/* Ends the open frames and adds them to the index. */
int segment_end_frames(Segment *segment);
/* Adds a clock anchor if a clock moved since the last one, or if `always`. */
int segment_note_clock(Segment *segment, const ClockAnchor *clock, bool always);
