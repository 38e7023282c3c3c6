/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Where an ELF file comes from: n bytes at an offset, fewer at its end only; or a negative errno.
 */
typedef struct UnwindSource {
    int64_t (*read)(void *userdata, uint64_t offset, void *to, size_t n);
    void *userdata;
} UnwindSource;
