/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"
#include "reduce/elf-view.h"
#include "reduce/reduce.h"
#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * From an ELF file that a stranger wrote to its reduced copy, which must be an ELF file whose
 * symbols have names in it, within its limit. What is read of the file stands for time.
 */

enum { LIMIT = 1 << 20, READ_FACTOR = 64, READ_FREE = 4 << 20 };

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

static void check_names(const ElfView *view, const ElfSection *table) {
    _cleanup_(buffer_done) Buffer symbols = {}, strings = {};

    if (table->link >= view->n_sections || elf_view_read(view, table, LIMIT, &symbols) < 0 ||
        elf_view_read(view, &view->sections[table->link], LIMIT, &strings) < 0)
        abort();
    for (size_t i = 0; i < symbols.size; i += elf_symbol_bytes(view)) {
        ElfSymbol s = elf_symbol_load(view, symbols.data + i);

        if (s.name >= strings.size || !memchr(strings.data + s.name, 0, strings.size - s.name))
            abort();
    }
}

static void check_reduced(Buffer *reduced) {
    Source from = {.file = buffer_bytes(reduced)};
    ReduceSource source = {.read = read_file, .userdata = &from};
    ElfView view;

    if (reduced->size > LIMIT || elf_view_open(&source, &view) < 0)
        abort();
    for (size_t i = 1; i < view.n_sections; i++) {
        const ElfSection *s = &view.sections[i];

        if (s->type == 2 || s->type == 11) /* SHT_SYMTAB, SHT_DYNSYM */
            check_names(&view, s);
    }
    elf_view_done(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t id[20] = {1, 2, 3};
    Source from = {.file = {.data = data, .size = size}};
    ReduceSource source = {.read = read_file, .userdata = &from};
    _cleanup_(buffer_done) Buffer reduced = {};
    int r = reduce_elf(&source, (Bytes){.data = id, .size = sizeof(id)}, LIMIT, &reduced);

    if (r == 0)
        check_reduced(&reduced);
    else if (reduced.size > 0)
        abort();
    if (from.n_read > READ_FREE + READ_FACTOR * size)
        abort();
    return 0;
}
