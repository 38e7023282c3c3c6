/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The unwind tables of files that were sampled. The drain looks up the table of a mapping and never
 * waits for it: a missing table is made on the scanner's thread, and a later sweep finds it.
 *
 *     state = table_cache_find(cache, &mapping, &table);
 *     table_cache_want(cache, &mapping, now_ns);
 *
 * One thread makes all calls; only table_cache_has() is for any thread.
 */

#include <stdbool.h>

#include "keeper/request/keeper-client.h"
#include "scan/cache/mapped-image.h"
#include "scan/cache/mapped-table.h"

enum {
    TABLE_FILES_MAX = 4096,          /* known files, with a table or without */
    TABLES_ASKED_MAX = 256,          /* tables that are being made */
    TABLE_CACHE_MAX_BYTES = 64 << 20 /* of all tables */
};

typedef struct TableCacheOptions {
    uint64_t limit_bytes;
    /* Starts to make the table of a file; table_cache_answer() ends it. -ENOBUFS: not now. */
    int (*ask)(void *userdata, const MappedImage *image);
    void *userdata;
} TableCacheOptions;

typedef struct TableCache TableCache;

int table_cache_new(const TableCacheOptions *options, TableCache **ret);
/* From now on, fewer bytes of tables: a limit of memory holds for profd. More than
 * TABLE_CACHE_MAX_BYTES, and 0, are TABLE_CACHE_MAX_BYTES. */
void table_cache_limit(TableCache *cache, uint64_t limit_bytes);
TableCache *table_cache_free(TableCache *cache);
DEFINE_CLEANUP(TableCache *, table_cache_free);

typedef enum TableState {
    TABLE_UNKNOWN, /* nobody asked for it yet */
    TABLE_PENDING, /* it is being made, or is made later; it may have been dropped to make room */
    TABLE_REFUSED, /* the file has none, or none that profd-elf can make or the cache can keep, or
                      cannot be opened */
    TABLE_READY,
} TableState;

/* Ignores pid, start and path of the image. *ret_table is set for TABLE_READY alone, and valid
 * until the version changes. */
TableState table_cache_find(TableCache *cache, const MappedImage *image,
                            const UnwindTable **ret_table);
/* Asks for a missing table, and every few minutes whether the file of a table has changed. Cheap
 * when there is nothing to ask. A negative errno: it cannot be asked for now. */
int table_cache_want(TableCache *cache, const MappedImage *image, uint64_t now_ns);
/* The content of the file has changed: its table is asked for again when it is wanted next. */
void table_cache_doubt(TableCache *cache, const MappedImage *image);
/* Grows with each change of what table_cache_find() returns. */
uint64_t table_cache_version(const TableCache *cache);

/* The answer for a file whose table was asked for. */
typedef struct TableAnswer {
    MappedImage image;  /* without a path */
    int result;         /* 0, or why there is no table */
    bool is_final;      /* with an error: it stays until the file changes */
    KeeperFileId id;    /* of the file, if the result is 0 */
    MappedTable *table; /* NULL with result 0: the cache already has the table of this file */
} TableAnswer;

/* Takes ownership of the table. */
void table_cache_answer(TableCache *cache, TableAnswer *answer, uint64_t now_ns);
/* Whether the cache has the table of a file. For any thread. */
bool table_cache_has(TableCache *cache, const KeeperFileId *id);

typedef struct TableCacheCounts {
    uint64_t files, ready, refused, asked; /* now */
    uint64_t tables, bytes;                /* now; files with equal tables share one */
    uint64_t evicted;                      /* tables dropped to make room, since the start */
} TableCacheCounts;

TableCacheCounts table_cache_counts(const TableCache *cache);
