/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "unwind/compile/unwind-compile.h"
#include "unwind/compile/unwind-limit.h"
#include "unwind/unwind-table.h"
#include "util/macro.h"

/*
 * From an ELF file that a stranger wrote to its table. What comes out must be a table, with rows in
 * order, and within the limits of memory; so must be what is read of the file, which stands for
 * time.
 */

enum { READ_FACTOR = 4, READ_FREE = 4 << 20 };

typedef struct Source {
    Bytes file;
    uint64_t n_read;
} Source;

static int64_t read_file(void *userdata, uint64_t offset, void *to, size_t n) {
    Source *source = userdata;
    size_t left = offset < source->file.size ? source->file.size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, source->file.data + offset, n);
    source->n_read += n;
    return (int64_t)n;
}

static void check_table(const UnwindTable *table) {
    const UnwindHeader *h = &table->header;

    for (uint32_t i = 0; i < h->n_rows; i++) {
        UnwindRule rule = unwind_table_find(table, h->base + table->pcs[i]);

        if ((i > 0 && table->pcs[i] <= table->pcs[i - 1]) || table->pcs[i] > h->span ||
            memcmp(&rule, &table->rules[table->rule_of_row[i]], sizeof(rule)) != 0)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Source from = {.file = {.data = data, .size = size}};
    UnwindSource source = {.read = read_file, .userdata = &from};
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    if (unwind_compile(&source, &image) == 0) {
        if (unwind_table_open(buffer_bytes(&image), &table) < 0)
            abort();
        check_table(&table);
    }
    /* Both sections may lie in the same bytes. */
    if (image.size > UNWIND_TABLE_FREE + 2 * UNWIND_TABLE_RATIO * size ||
        from.n_read > READ_FREE + READ_FACTOR * size)
        abort();
    return 0;
}
