/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/cache/table-cache.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>

#include "elf/sealed-file.h"
#include "test.h"
#include "util/clock.h"

/* What is asked for, kept, shared, refused, tried again, and what makes room for what. */

#define SECOND_NS NS_PER_SECOND
#define MINUTE_NS (60 * NS_PER_SECOND)

static TableCache *cache;
static unsigned n_asked;
static int ask_fails;

static int note_asked(void *userdata _unused_, const MappedImage *image _unused_) {
    if (ask_fails < 0)
        return ask_fails;
    n_asked++;
    return 0;
}

static void begin(uint64_t limit_bytes) {
    n_asked = 0;
    ask_fails = 0;
    if (table_cache_new(&(TableCacheOptions){.limit_bytes = limit_bytes, .ask = note_asked},
                        &cache) < 0)
        abort();
}

static void end(void) {
    cache = table_cache_free(cache);
}

static MappedImage image_of(uint64_t inode) {
    return (MappedImage){.major = 8, .minor = 1, .inode = inode, .pid = 42, .path = "/x"};
}

static KeeperFileId id_of(uint64_t inode) {
    return (KeeperFileId){.major = 8, .minor = 1, .inode = inode, .size = 1000};
}

/* A table of which only the size and one number matter. */
static MappedTable *table_of(uint32_t n_rows, uint64_t base) {
    UnwindHeader header = {.magic = UNWIND_MAGIC,
                           .version = UNWIND_VERSION,
                           .machine = EM_X86_64,
                           .base = base,
                           .n_pages = 2,
                           .n_rows = n_rows};
    uint64_t size = unwind_image_size(&header);
    uint8_t *bytes = calloc(1, size);
    MappedTable *table = NULL;
    int fd = -1;

    memcpy(bytes, &header, sizeof(header));
    if (sealed_file_new((Bytes){.data = bytes, .size = size}, &fd) < 0 ||
        mapped_table_new(fd, size, &table) < 0)
        abort();
    closep(&fd);
    free(bytes);
    return table;
}

static void answer(uint64_t inode, int result, bool is_final, MappedTable *table, uint64_t now_ns) {
    TableAnswer given = {.image = image_of(inode),
                         .result = result,
                         .is_final = is_final,
                         .id = id_of(inode),
                         .table = table};

    table_cache_answer(cache, &given, now_ns);
}

static int want(uint64_t inode, uint64_t now_ns) {
    return table_cache_want(cache, &(MappedImage){.major = 8, .minor = 1, .inode = inode}, now_ns);
}

static TableState find(uint64_t inode, const UnwindTable **ret) {
    MappedImage image = image_of(inode);

    return table_cache_find(cache, &image, ret);
}

static TableState state_of(uint64_t inode) {
    const UnwindTable *table;

    return find(inode, &table);
}

/* Asked for and there at once. */
static void add(uint64_t inode, uint32_t n_rows, uint64_t base) {
    if (want(inode, 1) < 0)
        abort();
    answer(inode, 0, false, table_of(n_rows, base), 1);
}

TEST(a_table_is_requested_once_and_then_found) {
    const UnwindTable *table = NULL;
    uint64_t version;

    begin(1 << 20);
    version = table_cache_version(cache);
    CHECK_EQ(find(7, &table), TABLE_UNKNOWN);
    CHECK_OK(want(7, 1));
    CHECK_OK(want(7, 1));
    CHECK_EQ(n_asked, 1U);
    CHECK_EQ(find(7, &table), TABLE_PENDING);
    CHECK(!table);
    answer(7, 0, false, table_of(10, 4096), 2);
    CHECK_EQ(find(7, &table), TABLE_READY);
    CHECK_EQ(table->header.base, 4096U);
    CHECK(table_cache_version(cache) > version);
    CHECK_OK(want(7, 3));
    CHECK_EQ(n_asked, 1U);
    end();
}

TEST(another_device_inode_or_generation_is_another_file) {
    MappedImage other[4];
    const UnwindTable *table;

    begin(1 << 20);
    add(7, 10, 0);
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        other[i] = image_of(7);
    other[0].major++;
    other[1].minor++;
    other[2].inode++;
    other[3].generation++;
    for (size_t i = 0; i < ARRAY_SIZE(other); i++)
        CHECK_EQ(table_cache_find(cache, &other[i], &table), TABLE_UNKNOWN);
    end();
}

TEST(only_files_with_equal_tables_share_one) {
    const UnwindTable *first, *second, *third;

    begin(1 << 20);
    add(1, 10, 4096);
    add(2, 10, 4096);
    add(3, 10, 8192);
    CHECK_EQ(find(1, &first), TABLE_READY);
    CHECK_EQ(find(2, &second), TABLE_READY);
    CHECK_EQ(find(3, &third), TABLE_READY);
    CHECK(first == second);
    CHECK(first != third);
    CHECK_EQ(table_cache_counts(cache).tables, 2U);
    CHECK_EQ(table_cache_counts(cache).ready, 3U);
    end();
}

TEST(a_file_with_a_second_name_uses_the_same_table) {
    MappedImage unknown_generation = image_of(7);
    KeeperFileId id = id_of(7), other = id_of(7);
    TableAnswer given = {.image = unknown_generation, .id = id};
    MappedImage known_generation = image_of(7);
    const UnwindTable *first, *second;

    begin(1 << 20);
    known_generation.generation = 5;
    CHECK(!table_cache_has(cache, &id));
    add(7, 10, 4096);
    CHECK(table_cache_has(cache, &id));
    other.mtime_ns++;
    CHECK(!table_cache_has(cache, &other));
    CHECK_OK(table_cache_want(cache, &known_generation, 1));
    given.image = known_generation;
    table_cache_answer(cache, &given, 1);
    CHECK_EQ(table_cache_find(cache, &known_generation, &first), TABLE_READY);
    CHECK_EQ(find(7, &second), TABLE_READY);
    CHECK(first == second);
    end();
}

TEST(a_refusal_is_remembered_and_checked_again_after_minutes) {
    begin(1 << 20);
    CHECK_OK(want(7, 1));
    answer(7, -ENODATA, true, NULL, 1);
    CHECK_EQ(state_of(7), TABLE_REFUSED);
    CHECK_OK(want(7, MINUTE_NS));
    CHECK_EQ(n_asked, 1U);
    CHECK_OK(want(7, 10 * MINUTE_NS));
    CHECK_EQ(n_asked, 2U);
    CHECK_EQ(state_of(7), TABLE_REFUSED);
    answer(7, 0, false, table_of(10, 0), 10 * MINUTE_NS);
    CHECK_EQ(state_of(7), TABLE_READY);
    end();
}

TEST(a_file_that_is_not_to_blame_is_tried_again_after_growing_delays) {
    uint64_t now_ns = 1, delay_ns = SECOND_NS;

    begin(1 << 20);
    for (unsigned i = 1; i <= 20; i++) {
        CHECK_OK(want(7, now_ns));
        CHECK_EQ(n_asked, i);
        answer(7, -EAGAIN, false, NULL, now_ns);
        CHECK_EQ(state_of(7), delay_ns < MINUTE_NS ? TABLE_PENDING : TABLE_REFUSED);
        CHECK_OK(want(7, now_ns + delay_ns - 1));
        CHECK_EQ(n_asked, i);
        now_ns += delay_ns;
        delay_ns = MIN(delay_ns * 2, 10 * MINUTE_NS);
    }
    /* After it was read, as if for the first time. */
    CHECK_OK(want(7, now_ns));
    answer(7, 0, false, table_of(10, 0), now_ns);
    now_ns += 10 * MINUTE_NS;
    CHECK_OK(want(7, now_ns));
    answer(7, -EAGAIN, false, NULL, now_ns);
    n_asked = 0;
    CHECK_OK(want(7, now_ns + SECOND_NS));
    CHECK_EQ(n_asked, 1U);
    end();
}

TEST(a_file_that_may_not_be_opened_is_refused_at_once_and_tried_again) {
    static const int results[] = {-EHOSTDOWN, -EOPNOTSUPP, -EACCES, -EPERM};

    begin(1 << 20);
    for (uint64_t i = 0; i < ARRAY_SIZE(results); i++) {
        CHECK_OK(want(i, 1));
        answer(i, results[i], false, NULL, 1);
        CHECK_EQ(state_of(i), TABLE_REFUSED);
        n_asked = 0;
        CHECK_OK(want(i, 1 + SECOND_NS));
        CHECK_EQ(n_asked, 1U);
        answer(i, 0, false, table_of(10, i), 1 + SECOND_NS);
        CHECK_EQ(state_of(i), TABLE_READY);
    }
    end();
}

TEST(a_file_that_was_overwritten_has_no_table_until_it_is_read_again) {
    MappedImage image = image_of(1), other = image_of(2);
    const UnwindTable *table;

    begin(MINUTE_NS);
    CHECK_OK(want(1, SECOND_NS));
    answer(1, 0, false, table_of(10, 0), SECOND_NS);
    CHECK_OK(want(1, 2 * SECOND_NS));
    CHECK_EQ(n_asked, 1U);
    table_cache_doubt(cache, &other);
    table_cache_doubt(cache, &image);
    CHECK_EQ(table_cache_find(cache, &image, &table), TABLE_PENDING);
    CHECK_OK(want(1, 3 * SECOND_NS));
    CHECK_EQ(n_asked, 2U);
    answer(1, 0, false, table_of(11, 0), 3 * SECOND_NS);
    CHECK_EQ(table_cache_find(cache, &image, &table), TABLE_READY);
    end();
}

TEST(a_table_stays_if_its_file_cannot_be_checked_again) {
    begin(1 << 20);
    add(7, 10, 4096);
    CHECK_OK(want(7, 10 * MINUTE_NS));
    CHECK_EQ(n_asked, 2U);
    CHECK_EQ(state_of(7), TABLE_READY);
    answer(7, -ESRCH, false, NULL, 10 * MINUTE_NS);
    CHECK_EQ(state_of(7), TABLE_READY);
    end();
}

TEST(the_least_recently_used_entry_is_evicted_and_can_return) {
    MappedTable *table = table_of(1000, 0);
    uint64_t size = table->image.size;

    mapped_table_free(table);
    begin(3 * size);
    for (uint64_t i = 1; i <= 3; i++)
        add(i, 1000, i);
    CHECK_EQ(table_cache_counts(cache).bytes, 3 * size);
    CHECK_EQ(state_of(1), TABLE_READY);
    add(4, 1000, 4);
    CHECK_EQ(state_of(1), TABLE_READY);
    CHECK_EQ(state_of(2), TABLE_PENDING);
    CHECK_EQ(state_of(3), TABLE_READY);
    CHECK_EQ(table_cache_counts(cache).bytes, 3 * size);
    CHECK_EQ(table_cache_counts(cache).evicted, 1U);
    /* Not at once: what does not fit would be made again and again. */
    n_asked = 0;
    CHECK_OK(want(2, SECOND_NS));
    CHECK_EQ(n_asked, 0U);
    CHECK_OK(want(2, 2 * MINUTE_NS));
    CHECK_EQ(n_asked, 1U);
    answer(2, 0, false, table_of(1000, 2), 2 * MINUTE_NS);
    CHECK_EQ(state_of(2), TABLE_READY);
    end();
}

TEST(a_shared_table_is_evicted_when_none_of_its_files_is_used) {
    MappedTable *table = table_of(1000, 0);
    uint64_t size = table->image.size;

    mapped_table_free(table);
    begin(2 * size);
    add(1, 1000, 1);
    add(2, 1000, 1);
    add(3, 1000, 3);
    CHECK_EQ(state_of(2), TABLE_READY);
    add(4, 1000, 4);
    CHECK_EQ(state_of(3), TABLE_PENDING);
    CHECK_EQ(state_of(4), TABLE_READY);
    add(5, 1000, 5);
    CHECK_EQ(state_of(1), TABLE_PENDING);
    CHECK_EQ(state_of(2), TABLE_PENDING);
    CHECK_EQ(table_cache_counts(cache).evicted, 2U);
    end();
}

TEST(a_table_that_is_larger_than_the_cache_is_refused) {
    begin(1000);
    add(7, 1000, 0);
    CHECK_EQ(state_of(7), TABLE_REFUSED);
    CHECK_EQ(table_cache_counts(cache).bytes, 0U);
    end();
}

TEST(the_number_of_pending_tables_is_limited) {
    begin(1 << 20);
    for (uint64_t i = 0; i < TABLES_ASKED_MAX; i++)
        CHECK_OK(want(i, 1));
    CHECK_EQ(want(TABLES_ASKED_MAX, 1), -ENOBUFS);
    CHECK_EQ(state_of(TABLES_ASKED_MAX), TABLE_UNKNOWN);
    answer(5, -ENODATA, true, NULL, 1);
    CHECK_OK(want(TABLES_ASKED_MAX, 1));
    CHECK_EQ(table_cache_counts(cache).asked, (uint64_t)TABLES_ASKED_MAX);
    end();
}

TEST(a_refused_request_is_repeated_at_the_next_sample) {
    begin(1 << 20);
    ask_fails = -ENOBUFS;
    CHECK_EQ(want(7, 1), -ENOBUFS);
    CHECK_EQ(state_of(7), TABLE_UNKNOWN);
    ask_fails = 0;
    CHECK_OK(want(7, 1));
    CHECK_EQ(state_of(7), TABLE_PENDING);
    end();
}

TEST(entries_are_evicted_at_the_limit_except_pending_ones) {
    begin(1 << 20);
    CHECK_OK(want(1, 1));
    add(2, 10, 4096);
    for (uint64_t i = 10; i < 10 + 2 * TABLE_FILES_MAX; i++) {
        CHECK_OK(want(i, 1));
        answer(i, -ENOEXEC, true, NULL, 1);
        CHECK_EQ(state_of(2), TABLE_READY);
    }
    CHECK_EQ(table_cache_counts(cache).files, (uint64_t)TABLE_FILES_MAX);
    CHECK_EQ(state_of(10), TABLE_UNKNOWN);
    CHECK_EQ(state_of(9 + 2 * TABLE_FILES_MAX), TABLE_REFUSED);
    answer(1, 0, false, table_of(10, 1), 1);
    CHECK_EQ(state_of(1), TABLE_READY);
    end();
}

static void *ask_what_is_there(void *userdata _unused_) {
    static unsigned n;

    for (uint64_t i = 0; i < 200000; i++) {
        KeeperFileId id = id_of(i % 8);

        n += table_cache_has(cache, &id);
    }
    return &n;
}

TEST(another_thread_may_query_the_cache_while_it_changes) {
    MappedTable *table = table_of(1000, 0);
    uint64_t now_ns = 1;
    pthread_t thread;
    void *n;

    begin(3 * table->image.size);
    mapped_table_free(table);
    CHECK_OK(pthread_create(&thread, NULL, ask_what_is_there, NULL));
    for (uint64_t i = 0; i < 400; i++, now_ns += 2 * MINUTE_NS)
        if (state_of(i % 8) != TABLE_READY && want(i % 8, now_ns) == 0)
            answer(i % 8, 0, false, table_of(1000, i % 8), now_ns);
    CHECK_OK(pthread_join(thread, &n));
    CHECK(table_cache_counts(cache).evicted > 0);
    CHECK(*(const unsigned *)n > 0);
    end();
}

TEST_MAIN()
