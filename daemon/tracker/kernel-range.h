/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The known addresses of kernel code: its text, modules, generated code. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

typedef struct KernelRange {
    uint64_t start, end; /* end is exclusive */
} KernelRange;

typedef struct KernelRanges {
    KernelRange *items; /* sorted by address, none touching another */
    size_t n;
} KernelRanges;

void kernel_ranges_done(KernelRanges *ranges);
/* Replaces the ranges by those of whole MMAP, MMAP2 and KSYMBOL records without trailer. -ENOMEM:
 * the old ranges stay. */
int kernel_ranges_read(KernelRanges *ranges, Bytes records);
/* The range that contains the address, or NULL. */
const KernelRange *kernel_ranges_find(const KernelRanges *ranges, uint64_t address);
