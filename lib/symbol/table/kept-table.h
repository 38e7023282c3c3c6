/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables in files of a folder of this user, one for each build id. A table is mapped, not read. */

#include "symbol/table/stored-table.h"

enum {
    KEPT_TABLE_SMALLEST = 32 << 10, /* smaller tables are made as fast as they are found */
    KEPT_TABLE_FILES_MAX = 4096,
    KEPT_TABLE_BYTES_MAX = 256 << 20, /* when a program begins to keep tables */
    KEPT_TABLE_DAYS = 60,             /* a file that was not used for so long is removed */
};

/* What the files were that a table was made of; another key means that it is out of date. */
typedef struct TableKey {
    uint64_t words[8];
} TableKey;

/* -ENOENT: the folder has no such table, or one with another key, or does not belong to us. */
int kept_table_load(const char *folder, Bytes build_id, const TableKey *key, StoredTable *ret);
/* Writes a table that is large enough. Who cannot write has no cache. */
void kept_table_save(const char *folder, Bytes build_id, const TableKey *key,
                     const StoredTable *table);
/* Removes what was not used for long, and what was used longest ago until the rest is small enough.
 */
void kept_table_trim(const char *folder, uint64_t bytes_max);
