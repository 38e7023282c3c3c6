/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The unwind tables of files that were sampled. Whoever drains samples asks for the table of a
 * mapping and never waits for it: a table that is not there is made on the scanner's thread, and is
 * there in a later sweep.
 *
 *     state = table_cache_find(cache, &mapping, &table);
 *     table_cache_want(cache, &mapping, now_ns);
 *
 * All calls but table_cache_has() are for one thread.
 */

#include <stdbool.h>

#include "keeper/request/keeper-client.h"
#include "scan/cache/mapped-image.h"
#include "scan/cache/mapped-table.h"

enum {
    TABLE_FILES_MAX = 4096,          /* files that are known, with a table or without */
    TABLES_ASKED_MAX = 256,          /* that are being made */
    TABLE_CACHE_MAX_BYTES = 64 << 20 /* of all tables */
};

typedef struct TableCacheOptions {
    uint64_t limit_bytes;
    /* Begins to make the table of a file; table_cache_answer() gets it. -ENOBUFS: not now. */
    int (*ask)(void *userdata, const MappedImage *image);
    void *userdata;
} TableCacheOptions;

typedef struct TableCache TableCache;

int table_cache_new(const TableCacheOptions *options, TableCache **ret);
TableCache *table_cache_free(TableCache *cache);
DEFINE_CLEANUP(TableCache *, table_cache_free);

typedef enum TableState {
    TABLE_UNKNOWN, /* nobody wants it, or it went to make room */
    TABLE_PENDING, /* it is being made, or is tried again later */
    TABLE_REFUSED, /* the file has none, or none that we can make */
    TABLE_READY,
} TableState;

/* Pid, start and path of the image are of no matter. *ret_table is set when it is ready, and good
 * until the version changes. */
TableState table_cache_find(TableCache *cache, const MappedImage *image,
                            const UnwindTable **ret_table);
/* Asks for a table that is not there, and from time to time whether the file of one that is there
 * has changed; cheap when there is nothing to ask for. 0, or why it cannot be asked for now. */
int table_cache_want(TableCache *cache, const MappedImage *image, uint64_t now_ns);
/* Another number after each change of what table_cache_find() returns, never one from before. */
uint64_t table_cache_version(const TableCache *cache);

/* What became of a file whose table was asked for. */
typedef struct TableAnswer {
    MappedImage image;  /* without a path */
    int result;         /* 0, or why there is no table */
    bool is_final;      /* this will not change as long as the file does not */
    KeeperFileId id;    /* of the file, when the result is 0 */
    MappedTable *table; /* NULL with a result of 0: the cache has the table of this file */
} TableAnswer;

/* Takes over the table. */
void table_cache_answer(TableCache *cache, TableAnswer *answer, uint64_t now_ns);
/* Whether the table of a file is there. For any thread. */
bool table_cache_has(TableCache *cache, const KeeperFileId *id);

typedef struct TableCacheCounts {
    uint64_t files, ready, refused, asked; /* now */
    uint64_t tables, bytes;                /* now; files with equal tables share one */
    uint64_t evicted;                      /* tables that went to make room, ever */
} TableCacheCounts;

TableCacheCounts table_cache_counts(const TableCache *cache);
