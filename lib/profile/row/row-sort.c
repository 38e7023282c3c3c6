/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "profile/row/profile-row.h"

/* The order in which rows are shown. Equal rows come in the order of their names, so that the same
 * profile is always printed in the same way. */

typedef struct RowSorter {
    const RowTable *table;
    RowSort sort;
    bool by_period;
    Buffer a, b;
} RowSorter;

static uint64_t row_sort_weight(const RowSorter *sorter, const ProfileRow *row, bool by_total) {
    if (by_total)
        return sorter->by_period ? row->total_period : row->total_samples;
    return sorter->by_period ? row->period : row->samples;
}

static int row_sort_compare_texts(Bytes a, Bytes b) {
    size_t n = MIN(a.size, b.size);
    int r = n > 0 ? memcmp(a.data, b.data, n) : 0;

    return r ? r : (a.size > b.size) - (a.size < b.size);
}

static int row_sort_compare_key(RowSorter *sorter, const ProfileRow *a, const ProfileRow *b,
                                unsigned key) {
    if (row_key_is_number(key)) {
        uint32_t x = row_table_number(sorter->table, a, key),
                 y = row_table_number(sorter->table, b, key);

        return (x > y) - (x < y);
    }
    buffer_clear(&sorter->a);
    buffer_clear(&sorter->b);
    row_table_put(sorter->table, a, key, &sorter->a);
    row_table_put(sorter->table, b, key, &sorter->b);
    return row_sort_compare_texts(buffer_bytes(&sorter->a), buffer_bytes(&sorter->b));
}

static int row_sort_compare(const void *x, const void *y, void *arg) {
    RowSorter *sorter = arg;
    const RowTable *table = sorter->table;
    const ProfileRow *a = &table->rows[*(const uint32_t *)x],
                     *b = &table->rows[*(const uint32_t *)y];

    for (unsigned i = 0; i < 2 && sorter->sort != ROW_BY_NAME; i++) {
        bool by_total = (sorter->sort == ROW_BY_TOTAL) == (i == 0);
        uint64_t v = row_sort_weight(sorter, a, by_total), w = row_sort_weight(sorter, b, by_total);

        if (v != w)
            return v > w ? -1 : 1;
    }
    for (size_t i = 0; i < table->keys.n; i++) {
        int r = row_sort_compare_key(sorter, a, b, table->keys.items[i]);

        if (r != 0)
            return r;
    }
    return 0;
}

int row_table_sort(RowTable *table, RowSort sort, bool by_period) {
    RowSorter sorter = {.table = table, .sort = sort, .by_period = by_period};
    int r;

    free(table->order);
    table->order = calloc(table->n + 1, sizeof(*table->order));
    if (!table->order)
        return -ENOMEM;
    for (uint32_t i = 0; i < table->n; i++)
        table->order[i] = i;
    qsort_r(table->order, table->n, sizeof(*table->order), row_sort_compare, &sorter);
    r = buffer_error(&sorter.a) ?: buffer_error(&sorter.b);
    buffer_done(&sorter.a);
    buffer_done(&sorter.b);
    return r;
}
