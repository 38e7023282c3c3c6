/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The gaps of a stream, and how much of an interval they take. Times are of CLOCK_REALTIME. */

#include "perfdata/record/stream-mark.h"

/* A zeroed one is valid and has none. */
typedef struct IntervalGaps {
    PdCoverage coverage;
} IntervalGaps;

void interval_gaps_done(IntervalGaps *gaps);
/* A mark of the stream that is a gap. */
int interval_gaps_add(IntervalGaps *gaps, const PdStreamMark *mark);
typedef struct IntervalMissing {
    uint64_t all_ns;     /* was not recorded, or is not there any more */
    uint64_t deleted_ns; /* of it, what profd had recorded and has deleted */
} IntervalMissing;

/* How much of [since, until) is missing; forgets the gaps that end before `until`. */
int interval_gaps_take(IntervalGaps *gaps, uint64_t since_ns, uint64_t until_ns,
                       IntervalMissing *ret);
