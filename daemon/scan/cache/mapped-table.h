/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An unwind table that profd-elf has made, mapped from its memfd. */

#include "unwind/unwind-table.h"
#include "util/macro.h"

typedef struct MappedTable {
    UnwindTable table;
    Bytes image;
    uint64_t hash; /* of the image */
    /* For the table cache: the number of files that share it, and its last look-up. */
    unsigned n_uses;
    uint64_t used;
} MappedTable;

/* Borrows the descriptor. -EBADMSG: it is no table, or its file could still change; any other error
 * is that of the mapping. */
int mapped_table_new(int fd, uint64_t size, MappedTable **ret);
MappedTable *mapped_table_free(MappedTable *table);
DEFINE_CLEANUP(MappedTable *, mapped_table_free);
/* Whether all bytes are the same. */
bool mapped_table_equals(const MappedTable *a, const MappedTable *b);
