/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The symbols of a kernel as /proc/kallsyms lists them, or a copy of that file. */

#include "symbol/table/name-build.h"

/* Which symbols are wanted, and what was seen. */
typedef struct KernelSymbols {
    const char *module;    /* NULL: those of the kernel itself */
    const char *reference; /* a symbol of the kernel, of any type; NULL: none */
    uint64_t base;         /* the address of the reference; 0: none, or the kernel hides it */
    uint64_t lowest;       /* the lowest address of a wanted symbol; 0: there is none */
} KernelSymbols;

/* Adds the wanted functions. Reads to the end of the descriptor: 0, -ENOMEM, or the error of
 * reading. Lines that make no sense are skipped. */
int kernel_symbols_read(int fd, KernelSymbols *wanted, NameBuild *build);
