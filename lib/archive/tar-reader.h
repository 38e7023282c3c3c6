/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads a tar archive, plain or compressed by gzip, entry by entry, with a fixed amount of memory.
 * Nothing is written: where an entry belongs is for the caller to decide, and its name is any
 * bytes.
 */

#include <sys/types.h>

#include "encode/gunzip.h"
#include "util/macro.h"

enum { TAR_NAME_MAX = 256, TAR_ENTRIES_MAX = 1 << 20 };

typedef struct TarEntry {
    const char *name; /* valid until the next call */
    uint64_t size;    /* what the archive claims */
    bool is_file;
} TarEntry;

typedef struct TarReader TarReader;

/* Reads from the source, which is at its beginning. -EBADMSG: it is no tar archive. */
int tar_reader_new(GunzipSource source, void *arg, TarReader **ret);
TarReader *tar_reader_free(TarReader *tar);
DEFINE_CLEANUP(TarReader *, tar_reader_free);

/* The next entry, after the rest of the last one was skipped: 1; 0 at the end; -EBADMSG if the
 * archive is damaged or cut, -E2BIG if it has too many entries, or the error of the source. */
int tar_reader_next(TarReader *tar, TarEntry *ret);
/* Bytes of the entry: how many, 0 at its end, or as above. */
ssize_t tar_reader_read(TarReader *tar, void *data, size_t size);
