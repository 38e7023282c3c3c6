/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A table of names together with the memory that it lies in. */

#include "symbol/table/name-build.h"
#include "util/macro.h"

typedef struct StoredTable {
    NameTable names;
    Buffer image; /* of a table that was just made */
    void *map;    /* of a table from the cache; NULL: none */
    size_t map_size;
} StoredTable;

/* Makes a table of the symbols: 0 or -ENOMEM. */
int stored_table_make(NameBuild *build, StoredTable *ret);
void stored_table_done(StoredTable *table);
