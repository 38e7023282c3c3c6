/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The text of /proc/kallsyms: a hundred thousand symbols, of which a few are needed. */

#include "util/buffer.h"

enum {
    BPF_IMAGES_MAX = 65536,
    BPF_NAME_MAX = 511,
};

typedef struct BpfImage {
    uint64_t address, length;
    size_t name; /* offset in names */
    size_t name_size;
} BpfImage;

typedef struct Kallsyms {
    uint64_t text, stext, etext; /* 0: missing, or hidden from us */
    BpfImage *images;            /* sorted by address */
    size_t n_images;
    Buffer names;
} Kallsyms;

/* Fills a zeroed Kallsyms; after an error the part before it is valid. */
int kallsyms_read(int fd, Kallsyms *ret);
void kallsyms_done(Kallsyms *kallsyms);
