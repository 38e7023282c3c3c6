/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What `info` counts while a recording passes by: records by type, samples by event, the span of
 * time, processes and threads, losses.
 */

#include "perfdata/reader/reader.h"

typedef struct SummaryType {
    uint32_t type;
    uint64_t n;
} SummaryType;

typedef struct SummaryEvent {
    uint64_t samples;
    uint64_t period_sum; /* of the sample's PERIOD, else of attr.sample_period */
} SummaryEvent;

/* A set of numbers with a bound, past which it only knows that there were more. */
typedef struct SummarySet {
    uint32_t *slots; /* a number + 1; 0: free */
    size_t n, n_slots;
    bool has_max; /* UINT32_MAX, which no slot can hold */
    bool full;
} SummarySet;

typedef struct Summary {
    SummaryType *types; /* ascending */
    size_t n_types;
    SummaryEvent *events; /* in attr order */
    size_t n_events;

    uint64_t records, samples;
    uint64_t unmatched_samples; /* of no event that the recording has */
    bool has_time;
    uint64_t first_time, last_time; /* of samples */
    SummarySet pids, tids;          /* of samples */
    uint64_t lost_events;           /* LOST: records that a ring had no room for */
    uint64_t lost_samples;          /* LOST_SAMPLES */
    uint64_t throttled;
    uint64_t auxtrace_bytes;
    uint64_t build_id_records;
} Summary;

/* Takes in one record. Returns 0, or -ENOMEM. */
int summary_add(Summary *summary, const PdRecord *record, const PdStamp *stamp);
void summary_done(Summary *summary);

static inline uint64_t summary_set_count(const SummarySet *set) {
    return set->n + set->has_max;
}
