/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What ELF files were found to hold, by which file it is and when it was changed last. */

#include "elf/note.h"
#include "keeper/request/keeper-client.h"

enum { ELF_CACHE_SETS = 128, ELF_CACHE_WAYS = 8 };

typedef struct ElfFact {
    KeeperFileId id;
    uint64_t used; /* 0: a free place */
    int result;    /* 0, or why there is no build id */
    BuildId build_id;
} ElfFact;

typedef struct ElfCache {
    uint64_t uses;
    ElfFact facts[ELF_CACHE_SETS][ELF_CACHE_WAYS];
} ElfCache;

/* NULL: it is not known. Valid until the next call. */
const ElfFact *elf_cache_find(ElfCache *cache, const KeeperFileId *id);
/* In place of what was not asked for for the longest time. */
void elf_cache_add(ElfCache *cache, const KeeperFileId *id, int result, const BuildId *build_id);
