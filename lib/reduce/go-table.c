/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/go-table.h"

#include <elf.h>
#include <errno.h>

#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * The runtime of Go finds the name of each function through .gopclntab: a header, the names, and a
 * table of functions by address, each with the place of a struct that begins with the address again
 * and the place of the name. Layouts: that of Go 1.16 has addresses of the size of a pointer; that
 * of Go 1.18, which 1.20 gave a new number, has offsets of 32 bits from the start of the text. The
 * linker of Go 1.26 no longer writes that start into the header; it is in the struct moduledata,
 * whose section has a name since then.
 */

enum {
    MAGIC_1_16 = 0xfffffffaU,
    MAGIC_1_18 = 0xfffffff0U,
    MAGIC_1_20 = 0xfffffff1U,
    HEADER_FIXED = 8,      /* bytes before the words of the header */
    MODULE_TEXT_WORD = 22, /* of moduledata */
    MISSES_MAX = 1024,     /* addresses outside of code, of a file that makes no sense */
};

typedef struct GoTable {
    Bytes bytes;
    bool swap, has_offsets;
    unsigned pointer; /* bytes of one */
    uint64_t n, text;
    Bytes names, functions; /* from there to the end */
} GoTable;

/* What is left behind an offset; empty if there is nothing. */
static Bytes go_table_from(Bytes bytes, uint64_t offset) {
    if (offset >= bytes.size)
        return (Bytes){};
    return (Bytes){.data = bytes.data + offset, .size = bytes.size - (size_t)offset};
}

static uint64_t go_table_word(const GoTable *go, unsigned i) {
    Bytes word = go_table_from(go->bytes, HEADER_FIXED + (uint64_t)i * go->pointer);

    return word.size >= go->pointer ? load_uint(word.data, go->pointer, go->swap) : 0;
}

static bool go_table_open(Bytes bytes, bool swap, GoTable *ret) {
    uint32_t magic = bytes.size >= HEADER_FIXED ? load_u32(bytes.data, swap) : 0;
    unsigned names;

    if (magic != MAGIC_1_16 && magic != MAGIC_1_18 && magic != MAGIC_1_20)
        return false;
    *ret = (GoTable){
        .bytes = bytes, .swap = swap, .has_offsets = magic != MAGIC_1_16, .pointer = bytes.data[7]};
    if (ret->pointer != 4 && ret->pointer != 8)
        return false;
    ret->n = go_table_word(ret, 0);
    ret->text = ret->has_offsets ? go_table_word(ret, 2) : 0;
    names = ret->has_offsets ? 3 : 2;
    ret->names = go_table_from(bytes, go_table_word(ret, names));
    ret->functions = go_table_from(bytes, go_table_word(ret, names + 4));
    return ret->n <= REDUCE_SYMBOLS_MAX;
}

/* The start of the text, as moduledata has it, or else that of the section. */
static uint64_t go_table_find_text(const ElfView *view, const GoTable *go) {
    size_t module = elf_view_find(view, ".go.module"), text = elf_view_find(view, ".text");
    uint64_t offset = (uint64_t)MODULE_TEXT_WORD * go->pointer, address;
    uint8_t word[sizeof(uint64_t)];

    if (module > 0 && view->sections[module].size >= offset + go->pointer &&
        view->sections[module].offset <= INT64_MAX &&
        reduce_read(view->source, view->sections[module].offset + offset, word, go->pointer) == 0) {
        address = load_uint(word, go->pointer, go->swap);
        if (elf_view_code_at(view, address) > 0)
            return address;
    }
    return text > 0 ? view->sections[text].address : 0;
}

static Bytes go_table_name(const GoTable *go, uint64_t function) {
    unsigned entry = go->has_offsets ? sizeof(uint32_t) : go->pointer;
    Bytes at = go_table_from(go->functions, function), name;

    if (at.size < entry + sizeof(uint32_t))
        return (Bytes){};
    name = go_table_from(go->names, load_u32(at.data + entry, go->swap));
    name.size = name.size > 0 ? strnlen((const char *)name.data,
                                        MIN(name.size, (size_t)REDUCE_SYMBOL_NAME_MAX + 1))
                              : 0;
    return name;
}

/* The address of function i, and where its struct is. Function n is the end of the last one. */
static bool go_table_entry(const GoTable *go, uint64_t i, uint64_t *ret_address,
                           uint64_t *ret_function) {
    unsigned size = go->has_offsets ? sizeof(uint32_t) : go->pointer;
    Bytes at = go_table_from(go->functions, i * 2 * size);

    if (at.size < size)
        return false;
    *ret_address = go->text + load_uint(at.data, size, go->swap);
    *ret_function = at.size >= (size_t)size * 2 ? load_uint(at.data + size, size, go->swap) : 0;
    return true;
}

/* Nearly all functions are in the section of the one before. */
static size_t go_table_section(const ElfView *view, uint64_t address, size_t last) {
    const ElfSection *s = &view->sections[last];

    return last > 0 && address - s->address < s->size ? last : elf_view_code_at(view, address);
}

static int go_table_add(SymbolTable *table, const GoTable *go) {
    uint64_t address, next, function, following;
    size_t section = 0, misses = 0;
    int r = 0;

    if (!go_table_entry(go, 0, &address, &function))
        return 0;
    for (uint64_t i = 0; r == 0 && i < go->n && misses < MISSES_MAX; i++) {
        ElfSymbol symbol = {.info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .value = address};
        Bytes name = go_table_name(go, function);

        if (!go_table_entry(go, i + 1, &next, &following))
            break;
        section = go_table_section(table->view, address, section);
        misses += section == 0;
        symbol.section = (uint16_t)section;
        symbol.size = next - address;
        if (next > address && section > 0 && name.size > 0 && name.size <= REDUCE_SYMBOL_NAME_MAX)
            r = symbol_table_add(table, &symbol, name);
        address = next;
        function = following;
    }
    return r;
}

int go_table_read(SymbolTable *table) {
    const ElfView *view = table->view;
    _cleanup_(buffer_done) Buffer bytes = {};
    size_t section = elf_view_find(view, ".gopclntab");
    GoTable go;
    int r;

    if (section == 0)
        section = elf_view_find(view, ".data.rel.ro.gopclntab");
    if (section == 0)
        return 0;
    r = elf_view_read(view, &view->sections[section], REDUCE_STRINGS_MAX, &bytes);
    if (r < 0)
        return r == -EBADMSG ? 0 : r;
    if (!go_table_open(buffer_bytes(&bytes), view->swap, &go))
        return 0;
    if (go.has_offsets && go.text == 0)
        go.text = go_table_find_text(view, &go);
    return go_table_add(table, &go);
}
