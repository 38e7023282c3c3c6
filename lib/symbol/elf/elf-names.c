/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/elf-names.h"

#include <elf.h>
#include <errno.h>

#include "reduce/go-table.h"
#include "reduce/symbol-table.h"
#include "symbol/elf/debug-data.h"
#include "symbol/elf/plt.h"

/*
 * As perf does it, .dynsym counts only where there is no .symtab. There .gnu_debugdata adds the
 * functions that .dynsym lacks, and a Go program has the table of its runtime.
 */

static const uint64_t limit_bytes = UINT64_C(512) << 20;

static size_t elf_names_section(const ElfView *view, uint32_t type) {
    for (size_t i = 1; i < view->n_sections; i++)
        if (view->sections[i].type == type &&
            view->sections[i].size > elf_symbol_bytes(view)) /* more than the null symbol */
            return i;
    return 0;
}

static bool elf_names_is_go(const ElfView *view) {
    return elf_view_find(view, ".gopclntab") > 0 ||
           elf_view_find(view, ".data.rel.ro.gopclntab") > 0;
}

ElfNaming elf_naming(const ElfFile *file) {
    const ElfView *view = elf_file_view(file);

    if (elf_names_section(view, SHT_SYMTAB) > 0 || elf_names_is_go(view))
        return elf_view_find(view, ".debug_info") > 0 || elf_view_find(view, ".zdebug_info") > 0
                   ? ELF_NAMES_LINES
                   : ELF_NAMES_WHOLE;
    return elf_names_section(view, SHT_DYNSYM) > 0 || elf_view_find(view, ".gnu_debugdata") > 0
               ? ELF_NAMES_DYNAMIC
               : ELF_NAMES_NONE;
}

static NameBinding elf_names_binding(uint8_t info) {
    unsigned binding = ELF64_ST_BIND(info);

    return binding == STB_WEAK ? NAME_WEAK : binding == STB_GLOBAL ? NAME_GLOBAL : NAME_LOCAL;
}

/* In a file that was not linked, values count from the start of the section. */
static uint64_t elf_names_value(const ElfView *view, const ElfSymbol *s) {
    return view->type == ET_REL ? view->sections[s->section].address + s->value : s->value;
}

/* Symbols of one section, or with `only` 0 all. */
static int elf_names_take(const SymbolTable *table, size_t only, NameBuild *build) {
    size_t size = elf_symbol_bytes(table->view);
    int r = 0;

    for (size_t i = 1; r == 0 && i < table->n; i++) {
        ElfSymbol s = elf_symbol_load(table->view, table->symbols.data + i * size);
        const char *name = (const char *)table->strings.data + s.name;
        NameSymbol symbol = {.address = elf_names_value(table->view, &s),
                             .size = s.size,
                             .binding = elf_names_binding(s.info),
                             .name = {.data = (const uint8_t *)name, .size = strlen(name)}};

        if (only == 0 || s.section == only)
            r = name_build_add(build, &symbol);
    }
    return r;
}

/* Symbols of a section, or with section 0 those of Go's table. */
static int elf_names_read(const ElfView *view, size_t section, NameBuild *build) {
    _cleanup_(symbol_table_done) SymbolTable table;
    int r;

    symbol_table_init(&table, view, limit_bytes);
    r = section > 0 ? symbol_table_read(&table, &view->sections[section]) : go_table_read(&table);
    if (r == 0 || r == -E2BIG || r == -EBADMSG)
        r = elf_names_take(&table, 0, build);
    return r == -E2BIG ? 0 : r;
}

static int elf_names_add_hidden(const ElfView *view, NameBuild *build) {
    _cleanup_(elf_file_freep) ElfFile *hidden = NULL;
    _cleanup_(buffer_done) Buffer bytes = {};
    size_t section;
    int r = debug_data_read(view, &bytes);

    if (r < 0)
        return r == -ENOMEM ? r : 0;
    r = elf_file_new_in_memory(buffer_bytes(&bytes), &hidden);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    section = elf_names_section(elf_file_view(hidden), SHT_SYMTAB);
    return section > 0 ? elf_names_read(elf_file_view(hidden), section, build) : 0;
}

int elf_names_add(const ElfFile *file, NameBuild *build) {
    const ElfView *view = elf_file_view(file);
    size_t whole = elf_names_section(view, SHT_SYMTAB),
           dynamic = elf_names_section(view, SHT_DYNSYM);
    int r = 0;

    if (whole > 0 || dynamic > 0)
        r = elf_names_read(view, whole > 0 ? whole : dynamic, build);
    if (r == 0 && whole == 0)
        r = elf_names_add_hidden(view, build);
    if (r == 0 && whole == 0 && elf_names_is_go(view))
        r = elf_names_read(view, 0, build);
    return r == 0 ? plt_names_add(view, build) : r;
}

/* A debug file has the header of the section without its bytes. */
int elf_names_add_section(const ElfFile *file, const char *name, NameBuild *build) {
    const ElfView *view = elf_file_view(file);
    size_t symbols = elf_names_section(view, SHT_SYMTAB), only = 0;
    _cleanup_(symbol_table_done) SymbolTable table;
    int r;

    for (size_t i = 1; only == 0 && i < view->n_sections; i++)
        if (bytes_equal_str(elf_view_name(view, &view->sections[i]), name))
            only = i;
    symbol_table_init(&table, view, limit_bytes);
    if (view->type != ET_REL || symbols == 0 || only == 0)
        return 0;
    r = symbol_table_read(&table, &view->sections[symbols]);
    if (r == 0 || r == -E2BIG || r == -EBADMSG)
        r = elf_names_take(&table, only, build);
    return r == -E2BIG ? 0 : r;
}

void elf_names_add_segments(const ElfFile *file, NameBuild *build) {
    const ElfView *view = elf_file_view(file);

    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < view->n_segments; i++) {
            const ElfSegment *s = &view->segments[i];

            /* Pages at the border of two segments are mapped twice, and code counts. */
            if (s->type == PT_LOAD && s->file_size > 0 && ((s->flags & PF_X) != 0) == (pass == 0))
                name_build_segment(
                    build,
                    &(NameSegment){.offset = s->offset, .size = s->file_size, .address = s->vaddr});
        }
}
