/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/range-list.h"

#include <string.h>

#include "util/macro.h"

/*
 * The spans that a destination has not sent yet, in an array of fixed size. Ranges that touch are
 * joined, so the array is as short as possible: an engine that is away costs one range, however
 * long. Where one more is needed and there is no space the oldest is dropped, for it is the first
 * that the engine will refuse.
 */

/* The first range that ends at or after `ns`. */
static size_t range_list_find(const RangeList *list, uint64_t ns) {
    size_t low = 0, high = list->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (list->items[middle].until_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void range_list_cut(RangeList *list, size_t at, size_t n) {
    memmove(list->items + at, list->items + at + n, (list->n - at - n) * sizeof(Range));
    list->n -= n;
}

/* Inserts before `at`; what was dropped for it may be the new range itself. */
static uint64_t range_list_insert(RangeList *list, size_t at, Range range) {
    uint64_t dropped = 0;

    if (list->n == RANGES_MAX) {
        if (at == 0)
            return range.until_ns - range.since_ns;
        dropped = list->items[0].until_ns - list->items[0].since_ns;
        range_list_cut(list, 0, 1);
        at--;
    }
    memmove(list->items + at + 1, list->items + at, (list->n - at) * sizeof(Range));
    list->items[at] = range;
    list->n++;
    return dropped;
}

uint64_t range_list_add(RangeList *list, Range range) {
    size_t first, end;

    if (range.since_ns >= range.until_ns)
        return 0;
    first = end = range_list_find(list, range.since_ns);
    while (end < list->n && list->items[end].since_ns <= range.until_ns) {
        range.since_ns = MIN(range.since_ns, list->items[end].since_ns);
        range.until_ns = MAX(range.until_ns, list->items[end].until_ns);
        end++;
    }
    if (first == end)
        return range_list_insert(list, first, range);
    list->items[first] = range;
    range_list_cut(list, first + 1, end - first - 1);
    return 0;
}

uint64_t range_list_remove(RangeList *list, Range range) {
    size_t at = range_list_find(list, range.since_ns);

    if (range.since_ns >= range.until_ns)
        return 0;
    while (at < list->n && list->items[at].since_ns < range.until_ns) {
        Range *item = &list->items[at];

        if (item->until_ns <= range.since_ns)
            at++;
        else if (item->since_ns < range.since_ns && item->until_ns > range.until_ns) {
            Range rest = {range.until_ns, item->until_ns};

            item->until_ns = range.since_ns;
            return range_list_insert(list, at + 1, rest);
        } else if (item->since_ns < range.since_ns) {
            item->until_ns = range.since_ns;
            at++;
        } else if (item->until_ns > range.until_ns) {
            item->since_ns = range.until_ns;
            at++;
        } else
            range_list_cut(list, at, 1);
    }
    return 0;
}

uint64_t range_list_expire(RangeList *list, uint64_t until_ns) {
    uint64_t before = range_list_total(list);

    (void)range_list_remove(list, (Range){0, until_ns});
    return before - range_list_total(list);
}

uint64_t range_list_total(const RangeList *list) {
    uint64_t total = 0;

    for (size_t i = 0; i < list->n; i++)
        total += list->items[i].until_ns - list->items[i].since_ns;
    return total;
}

bool range_list_has(const RangeList *list, Range range) {
    size_t at = range_list_find(list, range.until_ns);

    return at < list->n && list->items[at].since_ns <= range.since_ns &&
           list->items[at].until_ns >= range.until_ns;
}

bool range_list_meets(const RangeList *list, Range range) {
    for (size_t i = range_list_find(list, range.since_ns); i < list->n; i++)
        if (range_meets(list->items[i], range))
            return true;
        else if (list->items[i].since_ns >= range.until_ns)
            break;
    return false;
}

bool range_list_is_valid(const RangeList *list) {
    uint64_t end = 0;

    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].since_ns >= list->items[i].until_ns ||
            (i > 0 && list->items[i].since_ns <= end))
            return false;
        end = list->items[i].until_ns;
    }
    return true;
}
