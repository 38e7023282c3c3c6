/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* ELF files with .eh_frame and .debug_frame that a test makes up, byte by byte. */

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/compile/unwind-compile.h"
#include "unwind/unwind-table.h"
#include "util/macro.h"

enum {
    MADE_TEXT = 0x401000, /* the address of the code */
    MADE_TEXT_SIZE = 0x1000,
    MADE_TEXT_OFFSET = 0x1000,
    MADE_DATA = 0x10000000, /* the address of everything else: as many bytes on as in the file */
    MADE_SECTIONS = 4,      /* none, .eh_frame, .debug_frame, names */
};

typedef struct MadeElf {
    uint16_t machine; /* 0: EM_X86_64 */
    uint64_t text, text_size;
    Buffer eh_frame, debug_frame;
    bool has_no_sections, is_compressed;
    uint64_t claimed_size; /* of .eh_frame, if it is not what it is */
    uint64_t second_text;  /* the address of another page of code */
} MadeElf;

/* -- entries ---------------------------------------------------------------------------------- */

/* An entry of which the size is known at its end. */
static inline size_t made_begin(Buffer *b, uint32_t id) {
    size_t at = b->size;

    buffer_u32(b, 0, false);
    buffer_u32(b, id, false);
    return at;
}

static inline void made_end(Buffer *b, size_t at) {
    while (b->size % 8 != 4)
        buffer_append(b, "", 1);
    store_u32(b->data + at, (uint32_t)(b->size - at - 4), false);
}

static inline void made_bytes(Buffer *b, const void *bytes, size_t n) {
    buffer_append(b, bytes, n);
}

#define MADE(b, ...)                                                                               \
    made_bytes((b), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* The usual CIE of x86-64, with whole addresses: CFA = rsp + 8, the return address below it. */
static inline size_t made_cie(Buffer *b, bool is_debug) {
    size_t at = made_begin(b, is_debug ? UINT32_MAX : 0);

    MADE(b, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1);
    made_end(b, at);
    return at;
}

/* An FDE of instructions. */
static inline void made_fde(Buffer *b, bool is_debug, size_t cie, uint64_t begin, uint64_t size,
                            const uint8_t *instructions, size_t n) {
    size_t at = made_begin(b, (uint32_t)(is_debug ? cie : b->size + 4 - cie));

    buffer_u64(b, begin, false);
    buffer_u64(b, size, false);
    made_bytes(b, instructions, n);
    made_end(b, at);
}

#define MADE_FDE(b, cie, begin, size, ...)                                                         \
    made_fde((b), false, (cie), (begin), (size), (const uint8_t[]){__VA_ARGS__},                   \
             sizeof((const uint8_t[]){__VA_ARGS__}))

/* -- files ------------------------------------------------------------------------------------ */

static inline void made_sections(const MadeElf *elf, Buffer *file, const uint64_t *at) {
    static const char names[] = "\0.eh_frame\0.debug_frame";
    Elf64_Shdr sections[MADE_SECTIONS] = {
        [1] = {.sh_name = 1,
               .sh_type = SHT_PROGBITS,
               .sh_flags = SHF_ALLOC,
               .sh_addr = MADE_DATA + at[0],
               .sh_offset = at[0],
               .sh_size = elf->claimed_size ? elf->claimed_size : elf->eh_frame.size},
        [2] = {.sh_name = 11,
               .sh_type = SHT_PROGBITS,
               .sh_flags = elf->is_compressed ? SHF_COMPRESSED : 0,
               .sh_offset = at[1],
               .sh_size = elf->debug_frame.size},
        [3] = {.sh_type = SHT_STRTAB, .sh_offset = file->size, .sh_size = sizeof(names)},
    };
    Elf64_Ehdr *header;

    buffer_append(file, names, sizeof(names));
    header = (Elf64_Ehdr *)file->data;
    header->e_shoff = file->size;
    header->e_shentsize = sizeof(sections[0]);
    header->e_shnum = MADE_SECTIONS;
    header->e_shstrndx = 3;
    buffer_append(file, sections, sizeof(sections));
}

static inline void made_file(const MadeElf *elf, Buffer *file) {
    uint64_t data_size = elf->eh_frame.size + 8;
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_type = ET_DYN,
                         .e_machine = elf->machine ? elf->machine : EM_X86_64,
                         .e_phoff = sizeof(header),
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 4};
    Elf64_Phdr segments[4] = {
        {.p_type = PT_LOAD,
         .p_flags = PF_R | PF_X,
         .p_offset = MADE_TEXT_OFFSET,
         .p_vaddr = elf->text ? elf->text : MADE_TEXT,
         .p_filesz = elf->text_size ? elf->text_size : MADE_TEXT_SIZE},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = MADE_DATA},
        {.p_type = PT_GNU_EH_FRAME, .p_filesz = 12},
        {.p_type = elf->second_text ? PT_LOAD : PT_NULL,
         .p_flags = PF_R | PF_X,
         .p_offset = 2 * MADE_TEXT_OFFSET,
         .p_vaddr = elf->second_text,
         .p_filesz = 0x1000},
    };
    uint64_t at[2], pointer_at = sizeof(header) + sizeof(segments);

    segments[1].p_filesz = pointer_at + 12 + data_size;
    segments[2].p_offset = pointer_at;
    segments[2].p_vaddr = MADE_DATA + pointer_at;
    buffer_append(file, &header, sizeof(header));
    buffer_append(file, segments, sizeof(segments));
    MADE(file, 1, 0x1b, 0x03, 0x3b, 8, 0, 0, 0, 0, 0, 0, 0); /* .eh_frame begins 8 further on */
    at[0] = file->size;
    buffer_append(file, elf->eh_frame.data, elf->eh_frame.size);
    buffer_zero(file, 8);
    at[1] = file->size;
    buffer_append(file, elf->debug_frame.data, elf->debug_frame.size);
    if (!elf->has_no_sections)
        made_sections(elf, file, at);
    if (buffer_error(file) < 0)
        abort();
}

static inline int64_t made_read(void *userdata, uint64_t offset, void *to, size_t n) {
    const Buffer *file = userdata;
    size_t left = offset < file->size ? file->size - (size_t)offset : 0;

    n = MIN(n, left);
    if (n > 0)
        memcpy(to, file->data + offset, n);
    return (int64_t)n;
}

static inline int made_compile_file(Buffer *file, Buffer *image) {
    UnwindSource source = {.read = made_read, .userdata = file};

    return unwind_compile(&source, image);
}

/* The table of such a file; the entries of the file are given back. */
static inline int made_compile(MadeElf *elf, Buffer *image, UnwindTable *table) {
    _cleanup_(buffer_done) Buffer file = {};
    int r;

    made_file(elf, &file);
    buffer_done(&elf->eh_frame);
    buffer_done(&elf->debug_frame);
    r = made_compile_file(&file, image);
    return r < 0 ? r : unwind_table_open(buffer_bytes(image), table);
}
