/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config/config.h"
#include "store/disk/batch.h"
#include "store/disk/segment-name.h"
#include "util/macro.h"

/* The description of a segment; kept while it is written, since the segment may have to begin
 * again. */
typedef struct SegmentPlan {
    char session[CONFIG_NAME_MAX];
    SegmentName name;
    bool directory;
    unsigned n_files; /* data.N of a directory */
    int zstd_level;
    PdEvents *events;
    Buffer tracing, preamble;
    ClockAnchor clock;
    PdCoverage coverage; /* at its beginning; from_ns 0: unknown */
    bool continues;
} SegmentPlan;

/* Takes the head's preamble and copies everything else. */
int segment_plan_new(SegmentHead *head, SegmentPlan **ret);
SegmentPlan *segment_plan_free(SegmentPlan *plan);
DEFINE_CLEANUP(SegmentPlan *, segment_plan_free);
size_t segment_plan_bytes(const SegmentPlan *plan);
/* The value of one sample; see Manifest.weight. */
uint64_t segment_sample_weight(const PdEvents *events);
