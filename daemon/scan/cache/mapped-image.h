/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A file, named by a mapping of it. */

#include <stdint.h>

typedef struct MappedImage {
    uint32_t pid;
    uint64_t start;
    uint32_t major, minor;
    uint64_t inode, generation; /* generation 0: not known */
    const char *path;           /* any */
} MappedImage;
