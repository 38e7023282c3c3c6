/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "config/config.h"
#include "store/disk/batch.h"
#include "store/disk/segment-name.h"
#include "util/macro.h"

/* What a segment is to be; kept as long as it is written, for it may have to begin anew. */
typedef struct SegmentPlan {
    char session[CONFIG_NAME_MAX];
    SegmentName name;
    bool directory;
    unsigned n_files; /* data.N of a directory */
    int zstd_level;
    PdEvents *events;
    Buffer tracing, preamble;
    ClockAnchor clock;
    PdCoverage coverage; /* as it begins; from_ns 0: not known */
    bool continues;
} SegmentPlan;

/* Takes the head's preamble and copies the rest. */
int segment_plan_new(SegmentHead *head, SegmentPlan **ret);
SegmentPlan *segment_plan_free(SegmentPlan *plan);
DEFINE_CLEANUP(SegmentPlan *, segment_plan_free);
size_t segment_plan_bytes(const SegmentPlan *plan);
/* What one sample stands for; see Manifest.weight. */
uint64_t segment_sample_weight(const PdEvents *events);
