/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/elf-view.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "reduce/reduce-limit.h"
#include "util/macro.h"

/*
 * Reads headers by a cursor that knows class and byte order, so that each struct is parsed in one
 * place. Tables are read in one go, after their size was checked against a limit: they are at most
 * a megabyte. What a header says of a place in the file is checked where that place is read.
 */

static uint64_t elf_view_word(const ElfView *view, Cursor *c) {
    return view->is_wide ? cursor_u64(c) : cursor_u32(c);
}

typedef struct ElfTables {
    uint64_t segments, sections;
    uint16_t segment_size, n_segments, section_size, n_sections, names;
} ElfTables;

static int elf_view_ident(ElfView *view) {
    const uint8_t *ident = view->ident;
    int r = reduce_read(view->source, 0, view->ident, sizeof(view->ident));

    if (r < 0)
        return r == -EBADMSG ? -ENOEXEC : r;
    if (memcmp(ident, ELFMAG, SELFMAG) != 0 ||
        (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64) ||
        (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB))
        return -ENOEXEC;
    view->is_wide = ident[EI_CLASS] == ELFCLASS64;
    view->swap = (ident[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return 0;
}

static int elf_view_header(ElfView *view, ElfTables *ret) {
    uint8_t bytes[sizeof(Elf64_Ehdr)];
    size_t n = view->is_wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    int r = reduce_read(view->source, 0, bytes, n);
    Cursor c = cursor_of(bytes, n, view->swap);

    if (r < 0)
        return r == -EBADMSG ? -ENOEXEC : r;
    (void)cursor_take(&c, EI_NIDENT);
    view->type = cursor_u16(&c);
    view->machine = cursor_u16(&c);
    (void)cursor_u32(&c);
    view->entry = elf_view_word(view, &c);
    ret->segments = elf_view_word(view, &c);
    ret->sections = elf_view_word(view, &c);
    view->flags = cursor_u32(&c);
    (void)cursor_u16(&c);
    ret->segment_size = cursor_u16(&c);
    ret->n_segments = cursor_u16(&c);
    ret->section_size = cursor_u16(&c);
    ret->n_sections = cursor_u16(&c);
    ret->names = cursor_u16(&c);
    return view->type == ET_EXEC || view->type == ET_DYN || view->type == ET_REL ? 0 : -ENOEXEC;
}

/* Reads n entries of a table, which must have the size that entries of this class have. */
static int elf_view_table(const ElfView *view, uint64_t offset, size_t n, size_t size,
                          size_t expected, Buffer *ret) {
    uint8_t *to;
    int r;

    if (size != expected)
        return -EBADMSG;
    to = buffer_reserve(ret, n * size);
    if (!to)
        return -ENOMEM;
    r = reduce_read(view->source, offset, to, n * size);
    if (r == 0)
        buffer_commit(ret, n * size);
    return r;
}

static ElfSegment elf_view_segment(const ElfView *view, Cursor *c) {
    ElfSegment s = {.type = cursor_u32(c)};

    if (view->is_wide)
        s.flags = cursor_u32(c);
    s.offset = elf_view_word(view, c);
    s.vaddr = elf_view_word(view, c);
    s.paddr = elf_view_word(view, c);
    s.file_size = elf_view_word(view, c);
    s.memory_size = elf_view_word(view, c);
    if (!view->is_wide)
        s.flags = cursor_u32(c);
    s.align = elf_view_word(view, c);
    return s;
}

static ElfSection elf_view_section(const ElfView *view, Cursor *c) {
    ElfSection s = {.name = cursor_u32(c), .type = cursor_u32(c)};

    s.flags = elf_view_word(view, c);
    s.address = elf_view_word(view, c);
    s.offset = elf_view_word(view, c);
    s.size = elf_view_word(view, c);
    s.link = cursor_u32(c);
    s.info = cursor_u32(c);
    s.align = elf_view_word(view, c);
    s.entry_size = elf_view_word(view, c);
    return s;
}

static int elf_view_segments(ElfView *view, const ElfTables *tables) {
    _cleanup_(buffer_done) Buffer bytes = {};
    size_t n = tables->n_segments;
    Cursor c;
    int r;

    if (n == 0)
        return 0;
    if (n > REDUCE_SEGMENTS_MAX)
        return -E2BIG;
    r = elf_view_table(view, tables->segments, n, tables->segment_size,
                       view->is_wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), &bytes);
    if (r < 0)
        return r;
    view->segments = calloc(n, sizeof(*view->segments));
    if (!view->segments)
        return -ENOMEM;
    c = cursor_of(bytes.data, bytes.size, view->swap);
    for (; view->n_segments < n; view->n_segments++)
        view->segments[view->n_segments] = elf_view_segment(view, &c);
    return 0;
}

/* A missing or malformed table of names leaves the sections without names. */
static int elf_view_names(ElfView *view, size_t names) {
    int r;

    if (names == 0 || names >= view->n_sections || view->sections[names].type != SHT_STRTAB)
        return 0;
    r = elf_view_read(view, &view->sections[names], REDUCE_SECTION_NAMES_MAX, &view->names);
    if (r == 0)
        view->names_section = names;
    return r == -EBADMSG ? 0 : r;
}

static int elf_view_sections(ElfView *view, const ElfTables *tables) {
    _cleanup_(buffer_done) Buffer bytes = {};
    size_t n = tables->n_sections;
    Cursor c;
    int r;

    /* A program without section headers is rare, and has no symbols for perf. */
    if (n == 0 || tables->sections == 0)
        return 0;
    if (n > REDUCE_SECTIONS_MAX)
        return -E2BIG;
    r = elf_view_table(view, tables->sections, n, tables->section_size,
                       view->is_wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), &bytes);
    if (r < 0)
        return r;
    view->sections = calloc(n, sizeof(*view->sections));
    if (!view->sections)
        return -ENOMEM;
    c = cursor_of(bytes.data, bytes.size, view->swap);
    for (; view->n_sections < n; view->n_sections++)
        view->sections[view->n_sections] = elf_view_section(view, &c);
    return elf_view_names(view, tables->names);
}

int elf_view_open(const ReduceSource *source, ElfView *ret) {
    ElfTables tables;
    int r;

    *ret = (ElfView){.source = source};
    r = elf_view_ident(ret);
    if (r == 0)
        r = elf_view_header(ret, &tables);
    if (r == 0)
        r = elf_view_segments(ret, &tables);
    return r == 0 ? elf_view_sections(ret, &tables) : r;
}

void elf_view_done(ElfView *view) {
    free(view->segments);
    free(view->sections);
    buffer_done(&view->names);
}

Bytes elf_view_name(const ElfView *view, const ElfSection *section) {
    const uint8_t *name;

    if (section->name >= view->names.size)
        return (Bytes){};
    name = view->names.data + section->name;
    return (Bytes){.data = name,
                   .size = strnlen((const char *)name, MIN(view->names.size - section->name,
                                                           (size_t)REDUCE_SECTION_NAME_MAX))};
}

static bool elf_view_has_bytes(const ElfSection *section) {
    return section->type != SHT_NULL && section->type != SHT_NOBITS && section->size > 0;
}

size_t elf_view_find(const ElfView *view, const char *name) {
    for (size_t i = 1; i < view->n_sections; i++)
        if (elf_view_has_bytes(&view->sections[i]) &&
            bytes_equal_str(elf_view_name(view, &view->sections[i]), name))
            return i;
    return 0;
}

size_t elf_view_find_type(const ElfView *view, uint32_t type) {
    for (size_t i = 1; i < view->n_sections; i++)
        if (view->sections[i].type == type && view->sections[i].size > 0)
            return i;
    return 0;
}

size_t elf_view_code_at(const ElfView *view, uint64_t address) {
    for (size_t i = 1; i < view->n_sections; i++) {
        const ElfSection *s = &view->sections[i];

        if ((s->flags & SHF_EXECINSTR) && address - s->address < s->size)
            return i;
    }
    return 0;
}

int elf_view_read(const ElfView *view, const ElfSection *section, uint64_t max, Buffer *ret) {
    uint8_t *to;
    int r;

    if (section->type == SHT_NOBITS)
        return -EBADMSG;
    if (section->size > max)
        return -E2BIG;
    to = buffer_reserve(ret, (size_t)section->size + 1);
    if (!to)
        return -ENOMEM;
    r = reduce_read(view->source, section->offset, to, (size_t)section->size);
    if (r < 0)
        return r;
    to[section->size] = 0;
    buffer_commit(ret, (size_t)section->size);
    return 0;
}

size_t elf_symbol_bytes(const ElfView *view) {
    return view->is_wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

ElfSymbol elf_symbol_load(const ElfView *view, const uint8_t *at) {
    Cursor c = cursor_of(at, elf_symbol_bytes(view), view->swap);
    ElfSymbol s = {.name = cursor_u32(&c)};

    if (!view->is_wide) {
        s.value = cursor_u32(&c);
        s.size = cursor_u32(&c);
    }
    s.info = cursor_u8(&c);
    s.other = cursor_u8(&c);
    s.section = cursor_u16(&c);
    if (view->is_wide) {
        s.value = cursor_u64(&c);
        s.size = cursor_u64(&c);
    }
    return s;
}
