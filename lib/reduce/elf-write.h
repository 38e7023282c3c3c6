/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes the reduced file: the headers of the original, and what was kept of its content. */

#include "reduce/symbol-table.h"

typedef struct ElfKept {
    const ElfView *view;
    Bytes build_id;
    const SymbolTable *symbols; /* NULL or empty: none */
    size_t symbols_section;     /* the section that they replace; 0: a new one */
    const SymbolTable *dynamic; /* the same for .dynsym */
    size_t dynamic_section;
    Bytes debuglink, debugdata; /* empty: none */
    size_t debuglink_section, debugdata_section;
} ElfKept;

/* Appends the file to the empty buffer: 0, -ENOMEM, -E2BIG. */
int elf_write(const ElfKept *kept, uint64_t limit_bytes, Buffer *ret);
