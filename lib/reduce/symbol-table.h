/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The symbols of functions that a reduced file gets, with their names, as the file will have
 * them. */

#include "reduce/elf-view.h"

typedef struct SymbolTable {
    const ElfView *view;
    uint64_t limit_bytes;    /* of both buffers together */
    Buffer symbols, strings; /* the first symbol and the first byte are null */
    size_t n, n_local;       /* n_local: the first symbols that are local, with the null symbol */
} SymbolTable;

void symbol_table_init(SymbolTable *table, const ElfView *view, uint64_t limit_bytes);
void symbol_table_done(SymbolTable *table);
/* Whether it has symbols besides the first one. */
bool symbol_table_is_empty(const SymbolTable *table);
/* 0, -ENOMEM, or -E2BIG. The name in `symbol` is replaced. */
int symbol_table_add(SymbolTable *table, const ElfSymbol *symbol, Bytes name);
/* Adds the functions of a section of symbols: 0, -ENOMEM, -E2BIG, -EBADMSG, or the error of
 * reading. */
int symbol_table_read(SymbolTable *table, const ElfSection *section);
