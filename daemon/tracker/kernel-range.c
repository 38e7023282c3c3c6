/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/kernel-range.h"

#include <errno.h>
#include <stdlib.h>

#include "perfdata/record/record.h"
#include "util/array.h"
#include "util/macro.h"

/*
 * Ranges are sorted, and ranges that overlap or touch are merged, so that a bisection finds the
 * only one that can contain an address. A host with many modules and BPF programs has thousands of
 * them, and generated code in none of them is sampled again and again.
 */

void kernel_ranges_done(KernelRanges *ranges) {
    free(ranges->items);
    *ranges = (KernelRanges){};
}

static int kernel_range_add(KernelRanges *ranges, uint64_t start, uint64_t length) {
    KernelRange *range;
    uint64_t end;

    if (length == 0)
        return 0;
    if (__builtin_add_overflow(start, length, &end))
        end = UINT64_MAX;
    range = array_grow(&ranges->items, &ranges->n);
    if (!range)
        return -ENOMEM;
    *range = (KernelRange){.start = start, .end = end};
    return 0;
}

static int kernel_range_add_record(KernelRanges *ranges, const PdRecord *record) {
    PdBody body;

    if (pd_record_parse(record, NULL, &body) < 0)
        return 0;
    if (record->type == PD_RECORD_MMAP || record->type == PD_RECORD_MMAP2)
        return kernel_range_add(ranges, body.mmap.start, body.mmap.length);
    if (record->type == PD_RECORD_KSYMBOL)
        return kernel_range_add(ranges, body.ksymbol.addr, body.ksymbol.length);
    return 0;
}

static int kernel_range_compare(const void *a, const void *b) {
    const KernelRange *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

static void kernel_range_sort_and_merge(KernelRanges *ranges) {
    size_t n = 0;

    if (ranges->n > 1)
        qsort(ranges->items, ranges->n, sizeof(*ranges->items), kernel_range_compare);
    for (size_t i = 0; i < ranges->n; i++) {
        const KernelRange *next = &ranges->items[i];

        if (n > 0 && next->start <= ranges->items[n - 1].end)
            ranges->items[n - 1].end = MAX(ranges->items[n - 1].end, next->end);
        else
            ranges->items[n++] = *next;
    }
    ranges->n = n;
}

int kernel_ranges_read(KernelRanges *ranges, Bytes records) {
    KernelRanges found = {};
    PdRecord record;

    while (pd_records_next(&records, &record))
        if (kernel_range_add_record(&found, &record) < 0) {
            kernel_ranges_done(&found);
            return -ENOMEM;
        }
    kernel_range_sort_and_merge(&found);
    kernel_ranges_done(ranges);
    *ranges = found;
    return 0;
}

const KernelRange *kernel_ranges_find(const KernelRanges *ranges, uint64_t address) {
    size_t first = 0;

    /* The first range that ends after the address. */
    for (size_t n = ranges->n; n > 0;)
        if (ranges->items[first + n / 2].end <= address) {
            first += n / 2 + 1;
            n -= n / 2 + 1;
        } else
            n /= 2;
    return first < ranges->n && ranges->items[first].start <= address ? &ranges->items[first]
                                                                      : NULL;
}
