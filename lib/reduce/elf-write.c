/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/elf-write.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "util/macro.h"

/*
 * Sections keep their order, so that the numbers in symbols still fit, and their names, addresses
 * and offsets, by which perf turns addresses into offsets. Those whose content is left out become
 * SHT_NOBITS, as in files that hold only debug information. New sections come last. Segments stay
 * as they are, though what they load is not here; only the one with the notes points to the note of
 * this file.
 *
 * The order is: header, program headers, content of sections, section headers.
 */

enum { ADDED_MAX = 6, ALIGN = 8, NOTE_NAME_SIZE = 4 };

typedef struct ElfWriter {
    const ElfKept *kept;
    const ElfView *view;
    Buffer *out;
    ElfSection *sections; /* of the new file; the name is an offset in `names` */
    size_t n_sections;
    Buffer names;
    uint64_t note_offset, note_size;
} ElfWriter;

static void elf_write_word(ElfWriter *w, uint64_t value) {
    if (w->view->is_wide)
        buffer_u64(w->out, value, w->view->swap);
    else
        buffer_u32(w->out, (uint32_t)value, w->view->swap);
}

static void elf_write_align(Buffer *out) {
    buffer_zero(out, -out->size & (ALIGN - 1));
}

static uint32_t elf_write_name(ElfWriter *w, Bytes name) {
    uint32_t at = (uint32_t)w->names.size;

    if (name.size == 0)
        return 0;
    buffer_append(&w->names, name.data, name.size);
    buffer_zero(&w->names, 1);
    return at;
}

static Bytes elf_write_text(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

/* The headers of all sections of the file, as if none of their content was kept. */
static int elf_write_take_sections(ElfWriter *w) {
    const ElfView *view = w->view;

    w->n_sections = MAX(view->n_sections, (size_t)1);
    w->sections = calloc(w->n_sections + ADDED_MAX, sizeof(*w->sections));
    if (!w->sections)
        return -ENOMEM;
    buffer_zero(&w->names, 1);
    for (size_t i = 1; i < view->n_sections; i++) {
        const ElfSection *s = &view->sections[i];

        w->sections[i] = (ElfSection){.name = elf_write_name(w, elf_view_name(view, s)),
                                      .type = s->type == SHT_NULL ? SHT_NULL : SHT_NOBITS,
                                      .flags = s->flags & (SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR),
                                      .address = s->address,
                                      .offset = s->offset,
                                      .size = s->size,
                                      .align = s->align};
    }
    return buffer_error(&w->names);
}

/* The section with this index, or a new one for index 0. */
static size_t elf_write_section(ElfWriter *w, size_t index, const char *name) {
    if (index > 0)
        return index;
    index = w->n_sections++;
    w->sections[index] = (ElfSection){.name = elf_write_name(w, elf_write_text(name))};
    return index;
}

/* Appends the content of a section and sets what its header says of it. */
static void elf_write_content(ElfWriter *w, size_t index, uint32_t type, Bytes content) {
    ElfSection *s = &w->sections[index];

    elf_write_align(w->out);
    s->type = type;
    s->offset = w->out->size;
    s->size = content.size;
    s->align = type == SHT_STRTAB ? 1 : ALIGN;
    buffer_append(w->out, content.data, content.size);
}

static int elf_write_note(ElfWriter *w) {
    _cleanup_(buffer_done) Buffer note = {};
    Bytes id = w->kept->build_id;
    size_t index;

    if (id.size == 0)
        return 0;
    buffer_u32(&note, NOTE_NAME_SIZE, w->view->swap);
    buffer_u32(&note, (uint32_t)id.size, w->view->swap);
    buffer_u32(&note, NT_GNU_BUILD_ID, w->view->swap);
    buffer_append(&note, "GNU", NOTE_NAME_SIZE);
    buffer_append(&note, id.data, id.size);
    buffer_zero(&note, -note.size & 3);
    index =
        elf_write_section(w, elf_view_find(w->view, ".note.gnu.build-id"), ".note.gnu.build-id");
    elf_write_content(w, index, SHT_NOTE, buffer_bytes(&note));
    w->sections[index].align = 4;
    w->note_offset = w->sections[index].offset;
    w->note_size = note.size;
    return buffer_error(&note);
}

/* A table of symbols and its strings, in the two sections that the file had for them if it had
 * them. */
static void elf_write_symbols(ElfWriter *w, const SymbolTable *table, size_t index, uint32_t type) {
    bool is_dynamic = type == SHT_DYNSYM;
    size_t strings = index > 0 ? w->view->sections[index].link : 0;

    if (!table || symbol_table_is_empty(table))
        return;
    if (strings == w->view->names_section || w->sections[strings].type != SHT_NOBITS)
        strings = 0;
    index = elf_write_section(w, index, is_dynamic ? ".dynsym" : ".symtab");
    strings = elf_write_section(w, strings, is_dynamic ? ".dynstr" : ".strtab");
    elf_write_content(w, index, type, buffer_bytes(&table->symbols));
    elf_write_content(w, strings, SHT_STRTAB, buffer_bytes(&table->strings));
    w->sections[index].link = (uint32_t)strings;
    w->sections[index].info = (uint32_t)table->n_local;
    w->sections[index].entry_size = elf_symbol_bytes(w->view);
}

static int elf_write_contents(ElfWriter *w) {
    const ElfKept *k = w->kept;
    int r = elf_write_note(w);

    elf_write_symbols(w, k->symbols, k->symbols_section, SHT_SYMTAB);
    elf_write_symbols(w, k->dynamic, k->dynamic_section, SHT_DYNSYM);
    if (k->debuglink.size > 0)
        elf_write_content(w, k->debuglink_section, SHT_PROGBITS, k->debuglink);
    if (k->debugdata.size > 0)
        elf_write_content(w, k->debugdata_section, SHT_PROGBITS, k->debugdata);
    return r;
}

static size_t elf_write_names(ElfWriter *w) {
    size_t index = elf_write_section(w, w->view->names_section, ".shstrtab");

    elf_write_content(w, index, SHT_STRTAB, buffer_bytes(&w->names));
    return index;
}

static void elf_write_section_headers(ElfWriter *w) {
    for (size_t i = 0; i < w->n_sections; i++) {
        const ElfSection *s = &w->sections[i];

        buffer_u32(w->out, s->name, w->view->swap);
        buffer_u32(w->out, s->type, w->view->swap);
        elf_write_word(w, s->flags);
        elf_write_word(w, s->address);
        elf_write_word(w, s->offset);
        elf_write_word(w, s->size);
        buffer_u32(w->out, s->link, w->view->swap);
        buffer_u32(w->out, s->info, w->view->swap);
        elf_write_word(w, s->align);
        elf_write_word(w, s->entry_size);
    }
}

static void elf_write_segment(ElfWriter *w, const ElfSegment *s) {
    bool swap = w->view->swap;

    buffer_u32(w->out, s->type, swap);
    if (w->view->is_wide)
        buffer_u32(w->out, s->flags, swap);
    elf_write_word(w, s->offset);
    elf_write_word(w, s->vaddr);
    elf_write_word(w, s->paddr);
    elf_write_word(w, s->file_size);
    elf_write_word(w, s->memory_size);
    if (!w->view->is_wide)
        buffer_u32(w->out, s->flags, swap);
    elf_write_word(w, s->align);
}

/* Every PT_NOTE becomes that of our note, or nothing. */
static ElfSegment elf_write_changed(const ElfWriter *w, const ElfSegment *s) {
    ElfSegment changed = *s;

    if (s->type == PT_LOAD)
        return changed;
    if (s->type != PT_NOTE || w->note_size == 0)
        return (ElfSegment){.type = PT_NULL};
    changed.offset = w->note_offset;
    changed.file_size = changed.memory_size = w->note_size;
    changed.align = 4;
    return changed;
}

static void elf_write_header(ElfWriter *w, uint64_t sections, size_t names) {
    const ElfView *view = w->view;
    size_t header = view->is_wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    const uint8_t ident[EI_NIDENT] = {ELFMAG0,
                                      ELFMAG1,
                                      ELFMAG2,
                                      ELFMAG3,
                                      view->ident[EI_CLASS],
                                      view->ident[EI_DATA],
                                      EV_CURRENT,
                                      view->ident[EI_OSABI],
                                      view->ident[EI_ABIVERSION]};

    buffer_append(w->out, ident, sizeof(ident));
    buffer_u16(w->out, view->type, view->swap);
    buffer_u16(w->out, view->machine, view->swap);
    buffer_u32(w->out, EV_CURRENT, view->swap);
    elf_write_word(w, view->entry);
    elf_write_word(w, view->n_segments > 0 ? header : 0);
    elf_write_word(w, sections);
    buffer_u32(w->out, view->flags, view->swap);
    buffer_u16(w->out, (uint16_t)header, view->swap);
    buffer_u16(w->out, view->is_wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), view->swap);
    buffer_u16(w->out, (uint16_t)view->n_segments, view->swap);
    buffer_u16(w->out, view->is_wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), view->swap);
    buffer_u16(w->out, (uint16_t)w->n_sections, view->swap);
    buffer_u16(w->out, (uint16_t)names, view->swap);
    for (size_t i = 0; i < view->n_segments; i++) {
        ElfSegment changed = elf_write_changed(w, &view->segments[i]);

        elf_write_segment(w, &changed);
    }
}

/* The headers in front are written twice, because they say where what follows them is. */
static int elf_write_file(ElfWriter *w) {
    _cleanup_(buffer_done) Buffer front = {};
    Buffer *out = w->out;
    uint64_t sections;
    size_t names;
    int r;

    elf_write_header(w, 0, 0);
    r = elf_write_contents(w);
    names = elf_write_names(w);
    elf_write_align(out);
    sections = out->size;
    elf_write_section_headers(w);
    w->out = &front;
    elf_write_header(w, sections, names);
    w->out = out;
    if (r == 0)
        r = buffer_error(&front) < 0 ? buffer_error(&front) : buffer_error(out);
    if (r == 0)
        r = buffer_error(&w->names);
    if (r == 0)
        memcpy(out->data, front.data, front.size);
    return r;
}

int elf_write(const ElfKept *kept, uint64_t limit_bytes, Buffer *ret) {
    ElfWriter w = {.kept = kept, .view = kept->view, .out = ret};
    int r = elf_write_take_sections(&w);

    if (r == 0)
        r = elf_write_file(&w);
    if (r == 0 && ret->size > limit_bytes)
        r = -E2BIG;
    free(w.sections);
    buffer_done(&w.names);
    if (r < 0)
        buffer_done(ret);
    return r;
}
