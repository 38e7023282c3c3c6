/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The names of a file's code by address, as one run of bytes that is built once and then only
 * searched, in memory or mapped from a cache. Rows have no overlaps: each holds from its address to
 * the next row's.
 */

#include "symbol/table/name-image.h"
#include "util/bytes.h"

typedef struct NameTable {
    const NameRow *rows;
    size_t n_rows;
    const NameSegment *segments;
    size_t n_segments;
    Bytes strings;
} NameTable;

typedef struct NameFound {
    Bytes name; /* as the symbol table has it; a NUL follows */
    uint64_t start;
} NameFound;

/* Looks into an image of name_build_image(), which must stay and be aligned to 8: 0, or -EBADMSG.
 */
int name_table_open(Bytes image, NameTable *ret);
/* Whether there is a symbol at the address. */
bool name_table_find(const NameTable *table, uint64_t address, NameFound *ret);
/* The address that an offset in the file is loaded to; false: it is not loaded. */
bool name_table_address(const NameTable *table, uint64_t offset, uint64_t *ret);
