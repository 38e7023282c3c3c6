/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/table-build.h"

#include <errno.h>

#include "unwind/compile/unwind-limit.h"

/*
 * A row with the same rule as the row before is omitted. Equal rules are kept once; if a file has
 * more rules than a row can number, the other rows have no rule. Pages are as small as possible
 * while their index stays below a sixth of the rows.
 */

enum {
    RULES_MAX = UINT16_MAX,
    PAGE_SHIFT_MIN = 6,
    PAGE_SHIFT_MAX = 31,
    ROWS_A_PAGE = 4,
};

static uint32_t table_build_n_rows(const TableBuild *build) {
    return (uint32_t)(build->pcs.size / sizeof(uint32_t));
}

static uint32_t table_build_n_rules(const TableBuild *build) {
    return (uint32_t)(build->rules.size / sizeof(UnwindRule));
}

int table_build_init(TableBuild *build, uint16_t machine, uint64_t base, uint32_t span) {
    UnwindRule none = {};

    *build = (TableBuild){.machine = machine, .base = base, .span = span, .seed = hash_seed()};
    buffer_append(&build->rules, &none, sizeof(none));
    return buffer_error(&build->rules);
}

void table_build_done(TableBuild *build) {
    buffer_done(&build->pcs);
    buffer_done(&build->rule_of_row);
    buffer_done(&build->rules);
    hash_index_done(&build->index);
}

/* Returns the number of a rule, and adds it if it is new. The index does not have the first
 * rule. */
static uint16_t table_build_number(TableBuild *build, const UnwindRule *rule) {
    uint64_t key =
        hash_bytes(build->seed, (Bytes){.data = (const void *)rule, .size = sizeof(*rule)});
    const UnwindRule *rules = (const void *)build->rules.data;
    uint32_t number, n = table_build_n_rules(build);

    if (rule->kind == UNWIND_NONE)
        return 0;
    for (size_t probe = 0; (number = hash_index_next(&build->index, key, &probe)) > 0;)
        if (memcmp(&rules[number], rule, sizeof(*rule)) == 0)
            return (uint16_t)number;
    if (n == RULES_MAX)
        return 0;
    if (hash_index_add(&build->index, key) < 0)
        build->rules.error = -ENOMEM;
    buffer_append(&build->rules, rule, sizeof(*rule));
    return (uint16_t)n;
}

int table_build_row(TableBuild *build, uint64_t pc, const UnwindRule *rule) {
    uint32_t offset = (uint32_t)(pc - build->base);
    uint16_t number;

    if (memcmp(rule, &build->last, sizeof(*rule)) == 0)
        return 0;
    if (pc - build->base > build->span)
        return 0;
    if (table_build_n_rows(build) == UNWIND_ROWS_MAX)
        return -E2BIG;
    number = table_build_number(build, rule);
    buffer_append(&build->pcs, &offset, sizeof(offset));
    buffer_append(&build->rule_of_row, &number, sizeof(number));
    build->last = *rule;
    if (build->pcs.error || build->rule_of_row.error || build->rules.error)
        return -ENOMEM;
    return 0;
}

static void table_build_pages(const TableBuild *build, const UnwindHeader *header, Buffer *image) {
    const uint32_t *pcs = (const void *)build->pcs.data;
    uint32_t row = 0;

    for (uint64_t page = 0; page < header->n_pages; page++) {
        while (row < header->n_rows && pcs[row] < page << header->page_shift)
            row++;
        buffer_append(image, &row, sizeof(row));
    }
}

int table_build_image(const TableBuild *build, const UnwindSegment *segments, unsigned n_segments,
                      uint64_t limit_bytes, Buffer *ret) {
    UnwindHeader header = {.magic = UNWIND_MAGIC,
                           .version = UNWIND_VERSION,
                           .machine = build->machine,
                           .base = build->base,
                           .span = build->span,
                           .page_shift = PAGE_SHIFT_MIN,
                           .n_segments = n_segments,
                           .n_rules = table_build_n_rules(build),
                           .n_rows = table_build_n_rows(build)};
    uint64_t size;

    while (header.page_shift < PAGE_SHIFT_MAX &&
           header.span >> header.page_shift > header.n_rows / ROWS_A_PAGE)
        header.page_shift++;
    header.n_pages = (header.span >> header.page_shift) + 2;
    size = unwind_image_size(&header);
    if (size > limit_bytes)
        return -E2BIG;
    if (!buffer_reserve(ret, size))
        return -ENOMEM;
    buffer_append(ret, &header, sizeof(header));
    buffer_append(ret, segments, n_segments * sizeof(*segments));
    buffer_append(ret, build->rules.data, build->rules.size);
    table_build_pages(build, &header, ret);
    buffer_append(ret, build->pcs.data, build->pcs.size);
    buffer_append(ret, build->rule_of_row.data, build->rule_of_row.size);
    return buffer_error(ret);
}
