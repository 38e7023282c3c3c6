/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* --time A,B: seconds of the recording's clock, either end optional, or a percentage of its
 * span. */

#include "client/frame/option.h"

typedef struct TimeRange {
    bool set;
    bool percent; /* relative to the span of the samples; ends in millionths */
    uint64_t from, to;
} TimeRange;

/* Field: TimeRange. "A,B", "A,", ",B"; "10%-20%" and "10%/2", the second tenth, as in perf. */
int option_time_range(const Option *option, const char *argument, void *field);

/* Converts percentages to times, given the first and last one. */
void time_range_resolve(TimeRange *range, uint64_t first, uint64_t last);

/* Both ends are inclusive. */
static inline bool time_range_holds(const TimeRange *range, uint64_t time) {
    return time >= range->from && time <= range->to;
}
