/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the running profd keeps of the code that was sampled: reduced ELF files, lists of kernel
 * symbols, maps of generated code. Nothing is reported: without an answer there is nothing, and
 * nobody is asked again.
 */

#include "client/frame/context.h"
#include "util/macro.h"

enum { KEPT_NAME_MAX = 48 /* with the NUL */ };

typedef enum KeptKind { KEPT_ELF, KEPT_VDSO, KEPT_KALLSYMS, KEPT_MAP, KEPT_KINDS } KeptKind;

typedef struct KeptBinary {
    char name[KEPT_NAME_MAX]; /* a build id in hex, or PID-START of a map: no other characters */
    KeptKind kind;
    uint64_t bytes;
} KeptBinary;

typedef struct KeptBinaries KeptBinaries;

/* Does not connect yet; the context is borrowed. */
int kept_binaries_new(const Context *c, KeptBinaries **ret);
KeptBinaries *kept_binaries_free(KeptBinaries *kept);
DEFINE_CLEANUP(KeptBinaries *, kept_binaries_free);

/* Asks for the list if it is not known, or is old and lacks the name. NULL: there is none. Valid
 * until the next call. */
const KeptBinary *kept_binaries_find(KeptBinaries *kept, const char *name);
/* All whose names begin so, from the number `from` on; NULL: there are no more. */
const KeptBinary *kept_binaries_next(KeptBinaries *kept, const char *prefix, size_t *from);
/* Writes its content to an empty file and goes back to its begin: 0 or a negative errno. */
int kept_binaries_read(KeptBinaries *kept, const KeptBinary *binary, int fd);

/* "elf", "vdso", "kallsyms", "map" */
const char *kept_kind_name(KeptKind kind);
