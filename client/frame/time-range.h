/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* --time A,B: seconds of the recording's clock, either end open, or a share of it in percent. */

#include "client/frame/option.h"

typedef struct TimeRange {
    bool set;
    bool percent; /* of the span of the samples; ends in millionths of it */
    uint64_t from, to;
} TimeRange;

/* Field: TimeRange. "A,B", "A,", ",B"; "10%-20%" and "10%/2", the second tenth, as perf has it. */
int option_time_range(const Option *option, const char *argument, void *field);

/* Turns percent into times, given the first and last one there is. */
void time_range_resolve(TimeRange *range, uint64_t first, uint64_t last);

/* Both ends belong to it. */
static inline bool time_range_holds(const TimeRange *range, uint64_t time) {
    return time >= range->from && time <= range->to;
}
