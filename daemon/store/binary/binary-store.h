/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * STORE/binaries: what names the code of files that were sampled, in the layout of perf's build-id
 * cache. A thread that may wait for the disk calls the functions that say so; the others take a
 * lock that is never held while profd waits for a disk.
 */

#include <stdbool.h>
#include <stdint.h>

#include "store/binary/binary.h"
#include "store/folder/store.h"

typedef struct BinaryStore BinaryStore;

/* The store must outlive it. Nothing is read before binary_store_load(). */
int binary_store_new(Store *store, BinaryStore **ret);
BinaryStore *binary_store_free(BinaryStore *binaries);
DEFINE_CLEANUP(BinaryStore *, binary_store_free);

/* Whether it is kept, for files of that owner; if so, it counts as used now. What root's file said
 * is not replaced, because a file only claims its build id. */
bool binary_store_has(BinaryStore *binaries, const char *name, uint32_t owner);
/* The name of the map of a process, which an earlier recorder may have given with another reading
 * of the clocks. */
void binary_store_find_map(BinaryStore *binaries, uint32_t pid, uint64_t start_real_ns,
                           char ret[BINARY_NAME_MAX]);
/* Whether a path of it is noted, or no more paths can be. */
bool binary_store_knows_path(BinaryStore *binaries, const char *name, const char *path);

/* What is to be kept. The content is that of an open file. */
typedef struct BinaryNew {
    BinaryKind kind;
    char name[BINARY_NAME_MAX];
    uint32_t owner;
    int fd;
    uint64_t bytes;
    const char *path; /* NULL: none */
} BinaryNew;

/* These wait for the disk. */
/* Lists what earlier runs left, whatever somebody put there. */
int binary_store_load(BinaryStore *binaries);
/* Keeps it, in place of what has that name; removes what was not used for the longest time. -EFBIG:
 * it is larger than all may be; -EEXIST: the name belongs to another kind. */
int binary_store_put(BinaryStore *binaries, const BinaryNew *new);
/* Notes another path of it. */
int binary_store_note_path(BinaryStore *binaries, const char *name, const char *path);
/* Writes when each was used last, and removes what exceeds the budget, or was last used before the
 * oldest sample of the store. */
int binary_store_tend(BinaryStore *binaries);

/* Calls fn for each by name. */
int binary_store_each(BinaryStore *binaries, int (*fn)(void *userdata, const BinaryInfo *info),
                      void *userdata);
/* -ENOENT: there is none of that name. */
int binary_store_open_file(BinaryStore *binaries, const char *name, int *ret_fd,
                           uint64_t *ret_bytes);

typedef struct BinaryUse {
    uint64_t n, bytes, limit_bytes;
    uint64_t kept, removed; /* since the start */
} BinaryUse;

BinaryUse binary_store_use(BinaryStore *binaries);
