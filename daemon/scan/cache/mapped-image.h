/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Identifies a file by one of its mappings. */

#include <stdint.h>

typedef struct MappedImage {
    uint32_t pid;
    uint64_t start, end; /* end: only where the file must be mapped exactly so */
    uint32_t major, minor;
    uint64_t inode, generation; /* generation 0: unknown */
    const char *path;           /* may be any bytes */
} MappedImage;
