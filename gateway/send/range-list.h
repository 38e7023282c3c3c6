/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A sorted, bounded list of spans of time that do not touch each other. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANGES_MAX = 1024 };

/* since <= time < until, CLOCK_REALTIME. */
typedef struct Range {
    uint64_t since_ns, until_ns;
} Range;

/* A zeroed list is valid and empty. */
typedef struct RangeList {
    Range items[RANGES_MAX];
    size_t n;
} RangeList;

/* Both return how many nanoseconds at the old end the list dropped because it was full. An empty
 * range changes nothing. */
uint64_t range_list_add(RangeList *list, Range range);
uint64_t range_list_remove(RangeList *list, Range range);
/* Removes all before `until_ns`; returns how many nanoseconds. */
uint64_t range_list_expire(RangeList *list, uint64_t until_ns);
/* The sum of all lengths. */
uint64_t range_list_total(const RangeList *list);
bool range_list_has(const RangeList *list, Range range);
/* Whether any part of the range is in the list. */
bool range_list_meets(const RangeList *list, Range range);
/* Whether two ranges have time in common. */
static inline bool range_meets(Range a, Range b) {
    return a.since_ns < b.until_ns && b.since_ns < a.until_ns;
}
/* Whether it is sorted, without empty ranges and without two that touch. */
bool range_list_is_valid(const RangeList *list);
