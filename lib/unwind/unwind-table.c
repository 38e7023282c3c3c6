/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind-table.h"

#include <errno.h>

#include "util/macro.h"

/*
 * The image as its readers see it. Its sizes are checked once and kept in our copy of the header;
 * the numbers in its arrays are checked at each use.
 */

uint64_t unwind_image_size(const UnwindHeader *h) {
    if (h->magic != UNWIND_MAGIC || h->version != UNWIND_VERSION || !unwind_machine(h->machine) ||
        h->n_segments > UNWIND_SEGMENTS_MAX || h->n_rules > UINT16_MAX + 1U || h->page_shift > 31 ||
        h->n_pages != (uint64_t)(h->span >> h->page_shift) + 2)
        return 0;
    return sizeof(*h) + h->n_segments * sizeof(UnwindSegment) + h->n_rules * sizeof(UnwindRule) +
           h->n_pages * sizeof(uint32_t) + h->n_rows * (sizeof(uint32_t) + sizeof(uint16_t));
}

int unwind_table_open(Bytes image, UnwindTable *ret) {
    UnwindTable table;
    uint64_t size;

    if (image.size < sizeof(table.header) || (uintptr_t)image.data % 8 != 0)
        return -EBADMSG;
    memcpy(&table.header, image.data, sizeof(table.header));
    size = unwind_image_size(&table.header);
    if (size == 0 || size > image.size)
        return -EBADMSG;
    table.segments = (const void *)(image.data + sizeof(table.header));
    table.rules = (const void *)(table.segments + table.header.n_segments);
    table.pages = (const void *)(table.rules + table.header.n_rules);
    table.pcs = table.pages + table.header.n_pages;
    table.rule_of_row = (const void *)(table.pcs + table.header.n_rows);
    *ret = table;
    return 0;
}

/* The first of the rows [low, high) that begins above pc. */
static uint32_t unwind_table_above(const uint32_t *pcs, uint32_t low, uint32_t high, uint32_t pc) {
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (pcs[middle] <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

UnwindRule unwind_table_find(const UnwindTable *table, uint64_t address) {
    const UnwindHeader *h = &table->header;
    uint64_t pc = address - h->base;
    uint32_t page, row, high;
    UnwindRule rule;
    uint16_t which;

    if (pc > h->span)
        return (UnwindRule){};
    page = (uint32_t)pc >> h->page_shift;
    high = MIN(table->pages[page + 1], h->n_rows);
    row = unwind_table_above(table->pcs, MIN(table->pages[page], high), high, (uint32_t)pc);
    if (row == 0)
        return (UnwindRule){};
    which = table->rule_of_row[row - 1];
    if (which >= h->n_rules)
        return (UnwindRule){};
    rule = table->rules[which];
    if (rule.kind > UNWIND_END || rule.base >= UNWIND_REGISTERS)
        return (UnwindRule){};
    return rule;
}

/* How well a segment fits a mapping. Where two segments share a page of the file, a mapping that
 * begins with that page shows the one that begins in it. */
static unsigned unwind_table_fit(const UnwindSegment *s, uint64_t size, uint64_t offset) {
    enum { PAGE = 4096 };

    if (s->offset >= offset)
        return s->offset - offset < PAGE ? 3 : s->offset - offset < size ? 1 : 0;
    return offset - s->offset < s->size ? 2 : 0;
}

int unwind_table_bias(const UnwindTable *table, uint64_t start, uint64_t size, uint64_t offset,
                      uint64_t *ret_bias) {
    unsigned best = 0;

    for (uint32_t i = 0; i < table->header.n_segments; i++) {
        UnwindSegment s = table->segments[i];
        unsigned fit = unwind_table_fit(&s, size, offset);

        if (fit > best) {
            best = fit;
            *ret_bias = start - (offset - s.offset + s.address);
        }
    }
    return best > 0 ? 0 : -ENOENT;
}
