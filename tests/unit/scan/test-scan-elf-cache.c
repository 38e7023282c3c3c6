/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/elf-cache.h"

#include <errno.h>

#include "test.h"

static ElfCache cache;

static const KeeperFileId file = {.major = 8,
                                  .minor = 1,
                                  .inode = 4711,
                                  .size = 1000,
                                  .mtime_ns = 5,
                                  .ctime_ns = 6,
                                  .generation = 7,
                                  .has_generation = 1};

TEST(a_cached_file_is_valid_until_anything_about_it_changes) {
    BuildId id = {.size = 20, .bytes = {1, 2, 3}};
    KeeperFileId other[8];

    memset(&cache, 0, sizeof(cache));
    CHECK(!elf_cache_find(&cache, &file, ELF_BUILD_ID));
    elf_cache_add(&cache, &file, ELF_BUILD_ID, 0, &id);
    CHECK(elf_cache_find(&cache, &file, ELF_BUILD_ID));
    CHECK_EQ(memcmp(&elf_cache_find(&cache, &file, ELF_BUILD_ID)->build_id, &id, sizeof(id)), 0);
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        other[i] = file;
    other[0].major++;
    other[1].minor++;
    other[2].inode++;
    other[3].size++;
    other[4].mtime_ns++;
    other[5].ctime_ns++;
    other[6].generation++;
    other[7].has_generation = 0;
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        CHECK(!elf_cache_find(&cache, &other[i], ELF_BUILD_ID));
}

TEST(selected_records_are_kept_and_others_dropped) {
    KeeperFileId other = file;

    memset(&cache, 0, sizeof(cache));
    elf_cache_add(&cache, &file, ELF_BUILD_ID, -ECANCELED, NULL);
    for (uint64_t i = 0; i < 100000; i++) {
        other.inode = 10000 + i;
        elf_cache_add(&cache, &other, ELF_BUILD_ID, -ENODATA, NULL);
        CHECK(elf_cache_find(&cache, &file, ELF_BUILD_ID));
    }
    CHECK_EQ(elf_cache_find(&cache, &file, ELF_BUILD_ID)->result, -ECANCELED);
    CHECK(elf_cache_find(&cache, &other, ELF_BUILD_ID));
    other.inode = 10000;
    CHECK(!elf_cache_find(&cache, &other, ELF_BUILD_ID));
}

TEST_MAIN()
