/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/elf-cache.h"

#include <string.h>

#include "util/hash.h"

/*
 * A fixed number of slots, in sets indexed by a hash of the file. Writing to a file changes its
 * change time, so it counts as another file here. The build id is not part of the key, because any
 * file may claim any build id.
 */

static ElfFact *elf_cache_set_of(ElfCache *cache, const KeeperFileId *id) {
    return cache->facts[hash_u64(id->inode, id->ctime_ns) % ELF_CACHE_SETS];
}

static bool elf_cache_is_same(const KeeperFileId *a, const KeeperFileId *b) {
    return memcmp(a, b, sizeof(*a)) == 0;
}

const ElfFact *elf_cache_find(ElfCache *cache, const KeeperFileId *id, ElfWant want) {
    ElfFact *set = elf_cache_set_of(cache, id);

    for (size_t i = 0; i < ELF_CACHE_WAYS; i++)
        if (set[i].used > 0 && set[i].want == want && elf_cache_is_same(&set[i].id, id)) {
            set[i].used = ++cache->uses;
            return &set[i];
        }
    return NULL;
}

void elf_cache_add(ElfCache *cache, const KeeperFileId *id, ElfWant want, int result,
                   const BuildId *build_id) {
    ElfFact *set = elf_cache_set_of(cache, id), *place = set;

    for (size_t i = 0; i < ELF_CACHE_WAYS; i++)
        if (set[i].used < place->used)
            place = &set[i];
    *place = (ElfFact){.id = *id, .want = want, .used = ++cache->uses, .result = result};
    if (result == 0)
        place->build_id = *build_id;
}
