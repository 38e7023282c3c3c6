/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Writes a tar archive of regular files, in the format that every tar reads. */

#include <stdint.h>

#include "util/bytes.h"
#include "util/macro.h"

/* Takes bytes; a negative errno ends the work and is returned. */
typedef int (*TarSink)(const void *data, size_t size, void *arg);

typedef struct TarWriter {
    TarSink sink;
    void *arg;
    uint64_t mtime_s; /* of the entries */
} TarWriter;

/* A name has at most 99 bytes. -ENAMETOOLONG; -EFBIG: 8 GiB or more. */
int tar_write_bytes(const TarWriter *tar, const char *name, Bytes content);
/* The whole file behind a descriptor, from its beginning. -EIO: it became shorter meanwhile. */
int tar_write_file(const TarWriter *tar, const char *name, int fd);
/* The mark of the end. */
int tar_write_end(const TarWriter *tar);
