/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The headers of an ELF file of either class and byte order, as numbers of one kind. */

#include "reduce/reduce-source.h"
#include "util/buffer.h"

typedef struct ElfSegment {
    uint32_t type, flags;
    uint64_t offset, vaddr, paddr, file_size, memory_size, align;
} ElfSegment;

typedef struct ElfSection {
    uint32_t name, type, link, info;
    uint64_t flags, address, offset, size, align, entry_size;
} ElfSection;

typedef struct ElfSymbol {
    uint32_t name; /* in its string table */
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
} ElfSymbol;

typedef struct ElfView {
    const ReduceSource *source;
    bool is_wide, swap;
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t flags;
    uint64_t entry;
    ElfSegment *segments;
    size_t n_segments;
    ElfSection *sections;
    size_t n_sections;
    size_t names_section; /* 0: none */
    Buffer names;         /* of sections; ends with a NUL */
} ElfView;

/* Must be passed to elf_view_done() after a failure too. The errors are those of reduce_elf(). */
int elf_view_open(const ReduceSource *source, ElfView *ret);
void elf_view_done(ElfView *view);
/* Up to REDUCE_SECTION_NAME_MAX bytes; "" if it has none. */
Bytes elf_view_name(const ElfView *view, const ElfSection *section);
/* The index of the first section of that name that has bytes in the file; 0: none. */
size_t elf_view_find(const ElfView *view, const char *name);
/* The same by the type of a section. */
size_t elf_view_find_type(const ElfView *view, uint32_t type);
/* The index of the executable section at an address; 0: none. */
size_t elf_view_code_at(const ElfView *view, uint64_t address);
/* The bytes of a section, at most `max` (else -E2BIG), with a NUL behind them that does not
 * count. */
int elf_view_read(const ElfView *view, const ElfSection *section, uint64_t max, Buffer *ret);
size_t elf_symbol_bytes(const ElfView *view);
/* `at` has elf_symbol_bytes(). */
ElfSymbol elf_symbol_load(const ElfView *view, const uint8_t *at);
