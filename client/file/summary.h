/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The counts of `info`, made while a recording is read: records by type, samples by event, the time
 * span, processes and threads, losses.
 */

#include "perfdata/reader/reader.h"
#include "util/hash-index.h"

typedef struct SummaryType {
    uint32_t type;
    uint64_t n;
} SummaryType;

typedef struct SummaryEvent {
    uint64_t samples;
    uint64_t period_sum; /* from the sample's PERIOD, else attr.sample_period */
} SummaryEvent;

/* A bounded set of numbers. */
typedef struct SummarySet {
    uint32_t *items;
    HashIndex index; /* its n is the count */
} SummarySet;

typedef struct Summary {
    SummaryType *types; /* sorted by type */
    size_t n_types;
    SummaryEvent *events; /* in attr order */
    size_t n_events;

    uint64_t records, samples;
    uint64_t unmatched_samples; /* of unknown events */
    bool has_time;
    uint64_t first_time, last_time; /* of samples */
    SummarySet pids, tids;          /* of samples */
    uint64_t lost_events;           /* LOST: records that did not fit into a ring */
    uint64_t lost_samples;          /* LOST_SAMPLES */
    uint64_t throttled;
    uint64_t auxtrace_bytes;
    uint64_t build_id_records;
} Summary;

/* Adds one record. Returns 0, or -ENOMEM. */
int summary_add(Summary *summary, const PdRecord *record, const PdStamp *stamp);
void summary_done(Summary *summary);
