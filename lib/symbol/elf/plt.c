/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/plt.h"

#include <elf.h>
#include <errno.h>

#include "util/macro.h"

/*
 * The linker makes one stub for each relocation of .rela.plt, in this order: in .plt behind its
 * header, and where branches are protected, in .plt.sec without one. The relocations refer to
 * .dynsym by number.
 */

enum {
    STUBS_MAX = 1 << 16,
    TABLE_MAX = 16 << 20,
    STRINGS_MAX = 64 << 20,
    STUB_SIZE = 16,
    NAME_MAX_BYTES = 4096,
};

typedef struct PltRow {
    uint16_t machine;
    uint64_t header_size; /* of .plt, before the first stub */
} PltRow;

/* clang-format off */
static const PltRow plt_rows[] = {
    { EM_X86_64,  16 },
    { EM_386,     16 },
    { EM_AARCH64, 32 },
};
/* clang-format on */

typedef struct PltTables {
    const ElfView *view;
    size_t relocation_size;
    Buffer relocations, symbols, strings;
} PltTables;

static void plt_tables_done(PltTables *t) {
    buffer_done(&t->relocations);
    buffer_done(&t->symbols);
    buffer_done(&t->strings);
}

static int plt_read(const ElfView *view, size_t section, uint64_t max, Buffer *ret) {
    return section > 0 && section < view->n_sections
               ? elf_view_read(view, &view->sections[section], max, ret)
               : -ENODATA;
}

static int plt_tables_read(PltTables *t) {
    const ElfView *view = t->view;
    size_t section = elf_view_find(view, ".rela.plt"), symbols;
    bool has_addend = section > 0;
    int r;

    if (!has_addend)
        section = elf_view_find(view, ".rel.plt");
    if (section == 0)
        return -ENODATA;
    t->relocation_size = (view->is_wide ? 16 : 8) + (has_addend ? (view->is_wide ? 8 : 4) : 0);
    symbols = view->sections[section].link;
    r = plt_read(view, section, TABLE_MAX, &t->relocations);
    if (r == 0)
        r = plt_read(view, symbols, TABLE_MAX, &t->symbols);
    return r == 0 ? plt_read(view, view->sections[symbols].link, STRINGS_MAX, &t->strings) : r;
}

/* The name of the function that relocation i is for, or nothing. */
static Bytes plt_name(const PltTables *t, size_t i) {
    const ElfView *view = t->view;
    const uint8_t *info = t->relocations.data + i * t->relocation_size + (view->is_wide ? 8 : 4);
    uint64_t number =
        view->is_wide ? load_u64(info, view->swap) >> 32 : load_u32(info, view->swap) >> 8;
    size_t size = elf_symbol_bytes(view);
    ElfSymbol s;

    if (number >= t->symbols.size / size)
        return (Bytes){};
    s = elf_symbol_load(view, t->symbols.data + number * size);
    if (s.name >= t->strings.size)
        return (Bytes){};
    return (Bytes){.data = t->strings.data + s.name,
                   .size = strnlen((const char *)t->strings.data + s.name,
                                   MIN(t->strings.size - s.name, (size_t)NAME_MAX_BYTES))};
}

static int plt_add(const PltTables *t, size_t section, uint64_t header_size, NameBuild *build) {
    const ElfSection *s = &t->view->sections[section];
    size_t n = MIN(t->relocations.size / t->relocation_size, (size_t)STUBS_MAX);
    char text[NAME_MAX_BYTES + sizeof("@plt")];
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        uint64_t at = header_size + i * STUB_SIZE;
        Bytes name = plt_name(t, i);

        if (at >= s->size)
            break;
        if (name.size == 0)
            continue;
        memcpy(text, name.data, name.size);
        memcpy(text + name.size, "@plt", sizeof("@plt"));
        r = name_build_add(build, &(NameSymbol){.address = s->address + at,
                                                .size = STUB_SIZE,
                                                .binding = NAME_GLOBAL,
                                                .name = {.data = (const uint8_t *)text,
                                                         .size = name.size + strlen("@plt")}});
    }
    return r == -E2BIG ? 0 : r;
}

int plt_names_add(const ElfView *view, NameBuild *build) {
    _cleanup_(plt_tables_done) PltTables tables = {.view = view};
    size_t lazy = elf_view_find(view, ".plt"), direct = elf_view_find(view, ".plt.sec");
    const PltRow *row = NULL;
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(plt_rows); i++)
        if (plt_rows[i].machine == view->machine)
            row = &plt_rows[i];
    if (!row || (lazy == 0 && direct == 0))
        return 0;
    r = plt_tables_read(&tables);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (lazy > 0)
        r = plt_add(&tables, lazy, row->header_size, build);
    return r == 0 && direct > 0 ? plt_add(&tables, direct, 0, build) : r;
}
