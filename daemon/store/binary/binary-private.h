/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this room share. */

#include <pthread.h>

#include "store/binary/binary.h"
#include "store/folder/store-private.h"

#define BINARY_ABOUT "about.json"

/* What is known without the disk. */
typedef struct BinaryEntry {
    char name[BINARY_NAME_MAX];
    BinaryKind kind;
    uint32_t owner;
    uint64_t bytes; /* that it takes on the disk */
    uint64_t used_real_ns;
    uint64_t paths[BINARY_PATHS_MAX]; /* hashes */
    uint8_t n_paths;
    bool is_dirty; /* the disk has an earlier use */
    bool is_stuck; /* it could not be removed */
} BinaryEntry;

typedef struct BinaryStore {
    Store *store;
    int folder, ids, maps; /* binaries, .build-id, maps; of the thread that waits for the disk */
    bool is_loaded;
    pthread_mutex_t mutex; /* of what follows */
    BinaryEntry *entries;  /* sorted by name */
    size_t n, n_allocated;
    uint64_t bytes, kept, removed;
} BinaryStore;

/* In binary-list.c, with the mutex held: */
BinaryEntry *binary_list_find(BinaryStore *b, const char *name);
/* Adds it, or replaces the one of that name: 0, -ENOMEM, -E2BIG. */
int binary_list_set(BinaryStore *b, const BinaryEntry *entry);
void binary_list_remove(BinaryStore *b, const char *name);
/* The one that was not used for the longest time and can be removed; NULL: there is none. */
const BinaryEntry *binary_list_oldest(const BinaryStore *b);

/* In binary-folder.c; they wait for the disk: */
/* Opens the folders, or opens them again after somebody deleted them. */
int binary_folder_open(BinaryStore *b);
/* The folder in which an entry lies, and the name of its file there; makes it if asked to. */
int binary_folder_of(BinaryStore *b, const char *name, BinaryKind kind, bool make, int *ret_fd,
                     char ret_file[BINARY_NAME_MAX + 8]);
/* Writes the content of an open file under a name, and seals it. */
int binary_folder_write(BinaryStore *b, int folder, const char *file, int from, uint64_t bytes);
int binary_folder_remove(BinaryStore *b, const BinaryEntry *entry);
/* Sets the last use on the disk. */
int binary_folder_use(BinaryStore *b, const BinaryEntry *entry);
int binary_folder_measure(BinaryStore *b, const BinaryEntry *entry, uint64_t *ret_bytes);

/* In binary-about.c: what about.json says. */
int binary_about_write(int folder, const BinaryInfo *info);
int binary_about_read(int folder, BinaryInfo *ret);
/* Cuts the info to what may be trusted, and hashes its paths into the entry. */
void binary_about_note(BinaryEntry *entry, const BinaryInfo *info);
uint64_t binary_about_hash(const char *path);
