/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "util/bytes.h"

/* Where a file comes from: n bytes at an offset, fewer at its end only; or a negative errno. */
typedef struct ReduceSource {
    int64_t (*read)(void *userdata, uint64_t offset, void *to, size_t n);
    void *userdata;
} ReduceSource;

/* Exactly n bytes: 0, -EBADMSG where the file ends before, or what reading failed with. */
int reduce_read(const ReduceSource *source, uint64_t offset, void *to, size_t n);
