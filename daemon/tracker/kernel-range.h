/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the code of the kernel lies that is known: its text, modules, generated code. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/bytes.h"

typedef struct KernelRange {
    uint64_t start, end; /* end is outside */
} KernelRange;

typedef struct KernelRanges {
    KernelRange *items; /* in order of address, none touches another */
    size_t n;
} KernelRanges;

void kernel_ranges_done(KernelRanges *ranges);
/* Takes the place of what was there: the ranges of whole MMAP, MMAP2 and KSYMBOL records without
 * trailer. -ENOMEM: what was there stays. */
int kernel_ranges_read(KernelRanges *ranges, Bytes records);
/* The range that holds the address, or NULL. */
const KernelRange *kernel_ranges_find(const KernelRanges *ranges, uint64_t address);
