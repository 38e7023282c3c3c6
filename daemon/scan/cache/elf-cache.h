/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Remembers the results of reading ELF files, by the identity of the file and its change time. */

#include "elf/elf-request.h"
#include "keeper/request/keeper-client.h"

enum { ELF_CACHE_SETS = 128, ELF_CACHE_WAYS = 8 };

typedef struct ElfFact {
    KeeperFileId id;
    ElfWant want;
    uint64_t used; /* 0: a free slot */
    int result;    /* 0, or why the file has none */
    BuildId build_id;
} ElfFact;

typedef struct ElfCache {
    uint64_t uses;
    ElfFact facts[ELF_CACHE_SETS][ELF_CACHE_WAYS];
} ElfCache;

/* NULL: unknown. Valid until the next call. */
const ElfFact *elf_cache_find(ElfCache *cache, const KeeperFileId *id, ElfWant want);
/* In place of what was not asked for for the longest time. The build id is that of a result of 0.
 */
void elf_cache_add(ElfCache *cache, const KeeperFileId *id, ElfWant want, int result,
                   const BuildId *build_id);
