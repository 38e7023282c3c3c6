/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* ELF files with named sections that a test makes up, of either class and byte order. */

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "util/buffer.h"

enum { MADE_PROGRAM_TEXT = 0x1000, MADE_PROGRAM_SECTIONS = 12 };

typedef struct MadeSection {
    const char *name;
    uint32_t type, link;
    uint64_t flags, address;
    Buffer content;
    uint64_t claimed_size; /* if it is not the size of the content */
} MadeSection;

typedef struct MadeProgram {
    bool is_narrow, swap;
    uint16_t type; /* 0: ET_DYN */
    size_t n; /* sections; the first is the null section, the second .text, the last the names */
    MadeSection sections[MADE_PROGRAM_SECTIONS];
} MadeProgram;

static inline void made_program_init(MadeProgram *p, bool is_narrow, bool swap) {
    *p = (MadeProgram){.is_narrow = is_narrow, .swap = swap, .n = 2};
    p->sections[1] = (MadeSection){.name = ".text",
                                   .type = SHT_PROGBITS,
                                   .flags = SHF_ALLOC | SHF_EXECINSTR,
                                   .address = MADE_PROGRAM_TEXT};
    buffer_zero(&p->sections[1].content, 0x1000);
}

static inline void made_program_done(MadeProgram *p) {
    for (size_t i = 0; i < MADE_PROGRAM_SECTIONS; i++)
        buffer_done(&p->sections[i].content);
}

/* Its index. */
static inline size_t made_program_add(MadeProgram *p, const char *name, uint32_t type,
                                      uint32_t link) {
    p->sections[p->n] = (MadeSection){.name = name, .type = type, .link = link};
    return p->n++;
}

static inline void made_program_word(const MadeProgram *p, Buffer *b, uint64_t v) {
    if (p->is_narrow)
        buffer_u32(b, (uint32_t)v, p->swap);
    else
        buffer_u64(b, v, p->swap);
}

static inline void made_program_symbol(const MadeProgram *p, Buffer *b, uint32_t name, uint8_t info,
                                       uint16_t section, uint64_t value, uint64_t size) {
    uint8_t marks[] = {info, 0};

    buffer_u32(b, name, p->swap);
    if (p->is_narrow) {
        buffer_u32(b, (uint32_t)value, p->swap);
        buffer_u32(b, (uint32_t)size, p->swap);
    }
    buffer_append(b, marks, sizeof(marks));
    buffer_u16(b, section, p->swap);
    if (!p->is_narrow) {
        buffer_u64(b, value, p->swap);
        buffer_u64(b, size, p->swap);
    }
}

static inline void made_program_header(const MadeProgram *p, Buffer *b, uint64_t sections) {
    bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != p->swap;
    uint8_t ident[EI_NIDENT] = {0x7f,
                                'E',
                                'L',
                                'F',
                                p->is_narrow ? ELFCLASS32 : ELFCLASS64,
                                big ? ELFDATA2MSB : ELFDATA2LSB,
                                EV_CURRENT};
    size_t size = p->is_narrow ? sizeof(Elf32_Ehdr) : sizeof(Elf64_Ehdr);

    buffer_append(b, ident, sizeof(ident));
    buffer_u16(b, p->type ? p->type : ET_DYN, p->swap);
    buffer_u16(b, EM_X86_64, p->swap);
    buffer_u32(b, EV_CURRENT, p->swap);
    made_program_word(p, b, 0);
    made_program_word(p, b, size);
    made_program_word(p, b, sections);
    buffer_u32(b, 0, p->swap);
    buffer_u16(b, (uint16_t)size, p->swap);
    buffer_u16(b, p->is_narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr), p->swap);
    buffer_u16(b, 1, p->swap);
    buffer_u16(b, p->is_narrow ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr), p->swap);
    buffer_u16(b, (uint16_t)p->n, p->swap);
    buffer_u16(b, (uint16_t)(p->n - 1), p->swap);
}

/* One that loads the text. */
static inline void made_program_segment(const MadeProgram *p, Buffer *b) {
    buffer_u32(b, PT_LOAD, p->swap);
    if (!p->is_narrow)
        buffer_u32(b, PF_R | PF_X, p->swap);
    made_program_word(p, b, 0x200);
    made_program_word(p, b, MADE_PROGRAM_TEXT);
    made_program_word(p, b, MADE_PROGRAM_TEXT);
    made_program_word(p, b, 0x1000);
    made_program_word(p, b, 0x1000);
    if (p->is_narrow)
        buffer_u32(b, PF_R | PF_X, p->swap);
    made_program_word(p, b, 0x1000);
}

/* Writes the file; the names of the sections are added. */
static inline void made_program_write(MadeProgram *p, Buffer *out) {
    Buffer body = {}, headers = {}, *names;
    size_t front = p->is_narrow ? sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr)
                                : sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);

    names = &p->sections[made_program_add(p, ".shstrtab", SHT_STRTAB, 0)].content;
    buffer_zero(names, 1);
    for (size_t i = 0; i < p->n; i++) {
        MadeSection *s = &p->sections[i];
        uint32_t name = s->name ? (uint32_t)names->size : 0;
        uint64_t offset = front + body.size;

        if (s->name)
            buffer_append(names, s->name, strlen(s->name) + 1);
        buffer_append(&body, s->content.data, s->content.size);
        buffer_u32(&headers, name, p->swap);
        buffer_u32(&headers, s->type, p->swap);
        made_program_word(p, &headers, s->flags);
        made_program_word(p, &headers, s->address);
        made_program_word(p, &headers, offset);
        made_program_word(p, &headers, s->claimed_size ? s->claimed_size : s->content.size);
        buffer_u32(&headers, s->link, p->swap);
        buffer_u32(&headers, 0, p->swap);
        made_program_word(p, &headers, 1);
        made_program_word(p, &headers,
                          s->type == SHT_SYMTAB || s->type == SHT_DYNSYM
                              ? (p->is_narrow ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym))
                              : 0);
    }
    made_program_header(p, out, front + body.size);
    made_program_segment(p, out);
    buffer_append(out, body.data, body.size);
    buffer_append(out, headers.data, headers.size);
    buffer_done(&body);
    buffer_done(&headers);
}
