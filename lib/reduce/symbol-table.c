/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/symbol-table.h"

#include <elf.h>
#include <errno.h>

#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * Symbols are read a few hundred at a time; their string table is read whole. Kept are those that
 * can name an address of code: functions, and labels of assembler sources in executable sections.
 */

enum { AT_ONCE = 512 };

void symbol_table_init(SymbolTable *table, const ElfView *view, uint64_t limit_bytes) {
    *table = (SymbolTable){.view = view, .limit_bytes = limit_bytes, .n = 1, .n_local = 1};
    buffer_zero(&table->symbols, elf_symbol_bytes(view));
    buffer_zero(&table->strings, 1);
}

void symbol_table_done(SymbolTable *table) {
    buffer_done(&table->symbols);
    buffer_done(&table->strings);
}

bool symbol_table_is_empty(const SymbolTable *table) {
    return table->n <= 1;
}

static void symbol_table_store(Buffer *out, const ElfView *view, const ElfSymbol *s,
                               uint32_t name) {
    const uint8_t marks[] = {s->info, s->other};

    buffer_u32(out, name, view->swap);
    if (!view->is_wide) {
        buffer_u32(out, (uint32_t)s->value, view->swap);
        buffer_u32(out, (uint32_t)s->size, view->swap);
    }
    buffer_append(out, marks, sizeof(marks));
    buffer_u16(out, s->section, view->swap);
    if (view->is_wide) {
        buffer_u64(out, s->value, view->swap);
        buffer_u64(out, s->size, view->swap);
    }
}

int symbol_table_add(SymbolTable *table, const ElfSymbol *symbol, Bytes name) {
    size_t size = table->symbols.size + elf_symbol_bytes(table->view);

    if (size + table->strings.size + name.size + 1 > table->limit_bytes)
        return -E2BIG;
    symbol_table_store(&table->symbols, table->view, symbol, (uint32_t)table->strings.size);
    buffer_append(&table->strings, name.data, name.size);
    buffer_zero(&table->strings, 1);
    if (table->n_local == table->n && ELF64_ST_BIND(symbol->info) == STB_LOCAL)
        table->n_local++;
    table->n++;
    return buffer_error(&table->symbols) < 0 ? buffer_error(&table->symbols)
                                             : buffer_error(&table->strings);
}

static bool symbol_table_wants(const ElfView *view, const ElfSymbol *s) {
    unsigned type = ELF64_ST_TYPE(s->info);

    if (s->section == SHN_UNDEF || s->section >= view->n_sections || s->section >= SHN_LORESERVE)
        return false;
    if (type == STT_FUNC || type == STT_GNU_IFUNC)
        return true;
    return type == STT_NOTYPE && view->sections[s->section].flags & SHF_EXECINSTR;
}

/* Mapping symbols of the linker, such as $x, are the names of no functions. */
static bool symbol_table_is_name(Bytes name) {
    return name.size > 0 && name.size <= REDUCE_SYMBOL_NAME_MAX && name.data[0] != '$';
}

static int symbol_table_take(SymbolTable *table, const uint8_t *symbols, size_t n, Bytes strings) {
    size_t size = elf_symbol_bytes(table->view);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        ElfSymbol s = elf_symbol_load(table->view, symbols + i * size);
        Bytes name = {};

        if (s.name >= strings.size || !symbol_table_wants(table->view, &s))
            continue;
        name.data = strings.data + s.name;
        name.size = strnlen((const char *)name.data,
                            MIN(strings.size - s.name, (size_t)REDUCE_SYMBOL_NAME_MAX + 1));
        if (symbol_table_is_name(name))
            r = symbol_table_add(table, &s, name);
    }
    return r;
}

static int symbol_table_read_symbols(SymbolTable *table, const ElfSection *section, Bytes strings) {
    const ElfView *view = table->view;
    size_t size = elf_symbol_bytes(view);
    uint8_t symbols[AT_ONCE * sizeof(Elf64_Sym)];
    uint64_t n = section->size / size;
    int r = 0;

    if (n > REDUCE_SYMBOLS_MAX)
        return -E2BIG;
    for (uint64_t i = 0; r == 0 && i < n; i += AT_ONCE) {
        size_t some = (size_t)MIN(n - i, (uint64_t)AT_ONCE);

        if (section->offset > INT64_MAX)
            return -EBADMSG;
        r = reduce_read(view->source, section->offset + i * size, symbols, some * size);
        if (r == 0)
            r = symbol_table_take(table, symbols, some, strings);
    }
    return r;
}

int symbol_table_read(SymbolTable *table, const ElfSection *section) {
    const ElfView *view = table->view;
    _cleanup_(buffer_done) Buffer strings = {};
    int r;

    if (section->link == 0 || section->link >= view->n_sections || section->type == SHT_NOBITS ||
        section->entry_size != elf_symbol_bytes(view))
        return -EBADMSG;
    r = elf_view_read(view, &view->sections[section->link], REDUCE_STRINGS_MAX, &strings);
    return r < 0 ? r : symbol_table_read_symbols(table, section, buffer_bytes(&strings));
}
