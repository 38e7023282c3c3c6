/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The layout of the bytes of a table: this header, the rows, the segments, the strings. In the byte
 * order of the host: images do not leave it. */

#include <assert.h>
#include <stdint.h>

#define NAME_IMAGE_MAGIC UINT64_C(0x31306d616e667270) /* changes with the layout */

typedef struct NameRow {
    uint64_t address;
    uint64_t start; /* where the symbol begins, which may be before the row */
    uint32_t name;  /* a place in the strings; 0: nothing is named here */
    uint32_t reserved;
} NameRow;

/* A run of the file that is loaded, for what is known as an offset in the file. */
typedef struct NameSegment {
    uint64_t offset, size, address;
} NameSegment;

typedef struct NameImage {
    uint64_t magic;
    uint64_t n_rows, n_segments, strings_size;
} NameImage;

static_assert(sizeof(NameImage) == 32 && sizeof(NameRow) == 24 && sizeof(NameSegment) == 24,
              "the parts of an image are aligned to 8");
