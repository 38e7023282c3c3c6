/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/order/order.h"

#include "test.h"

/* Any order in, time order out, equal times as they came; in memory, spilled, and released bit by
 * bit. Each record carries the number under which it was added. */

typedef struct Entry {
    uint64_t time;
    uint32_t number;
} Entry;

static uint64_t random_state = 88172645463325252;

static uint64_t random_u64(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static int compare(const void *a, const void *b) {
    const Entry *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static int add(PdSorter *sorter, Entry e, uint32_t size) {
    static uint8_t bytes[PD_RECORD_SIZE_MAX];
    PdRecord record = {.type = PD_RECORD_SAMPLE,
                       .misc = (uint16_t)e.number,
                       .size = size,
                       .data = bytes,
                       .offset = e.number,
                       .file = 3};

    memset(bytes, (int)e.number & 0xff, size);
    store_u32(bytes, e.number, false);
    return pd_sorter_add(sorter, &record, e.time);
}

/* The next record is this entry, its bytes as they were. */
static bool next_is(PdSorter *sorter, Entry e) {
    uint64_t time;
    PdRecord record;

    return pd_sorter_next(sorter, &record, &time) == 1 && time == e.time &&
           load_u32(record.data, false) == e.number && record.offset == e.number &&
           record.misc == (uint16_t)e.number && record.file == 3 &&
           record.data[record.size - 1] == (uint8_t)e.number;
}

static void sorts(Entry *entries, uint32_t n, uint64_t memory_bytes, bool expect_spill) {
    PdOrderOptions options = {.memory_bytes = memory_bytes, .spill_folder = "/tmp"};
    _cleanup_(pd_sorter_freep) PdSorter *sorter = NULL;
    uint64_t time;
    PdRecord record;

    CHECK_OK(pd_sorter_new(&options, &sorter));
    for (uint32_t i = 0; i < n; i++) {
        entries[i].number = i;
        CHECK_OK(add(sorter, entries[i], 8 + (uint32_t)(random_u64() % 300)));
    }
    CHECK_EQ(pd_sorter_next(sorter, &record, &time), 0);
    pd_sorter_release(sorter, UINT64_MAX);
    qsort(entries, n, sizeof(*entries), compare);
    for (uint32_t i = 0; i < n; i++)
        CHECK(next_is(sorter, entries[i]));
    CHECK_EQ(pd_sorter_next(sorter, &record, &time), 0);
    CHECK_EQ(pd_sorter_spilled(sorter), expect_spill);
}

TEST(random_times_with_many_equal_ones_come_out_sorted_and_stable) {
    Entry entries[5000];

    for (size_t i = 0; i < 5000; i++)
        entries[i].time = random_u64() % 1000 + 1;
    sorts(entries, 5000, 0, false);
}

TEST(records_beyond_the_memory_limit_are_spilled_and_merged) {
    static Entry entries[60000];

    for (size_t i = 0; i < 60000; i++)
        entries[i].time = random_u64() % 5000 + 1;
    /* about 12 MB through 64 KiB: more runs than are kept apart */
    sorts(entries, 60000, 64 << 10, true);
}

TEST(descending_times_are_sorted) {
    static Entry entries[20000];

    for (size_t i = 0; i < 20000; i++)
        entries[i].time = 20000 - i;
    sorts(entries, 20000, 0, false);
}

TEST(sorted_runs_as_the_kernel_writes_them_are_merged) {
    static Entry entries[20000];

    for (size_t i = 0; i < 20000; i++)
        entries[i].time = i % 2500 * 8 + i / 2500 + 1;
    sorts(entries, 20000, 0, false);
}

TEST(files_of_a_folder_are_merged) {
    static Entry entries[60000];

    for (size_t i = 0; i < 60000; i++)
        entries[i].time = i % 15000 / 3 * 4 + random_u64() % 5 + 1;
    sorts(entries, 60000, 64 << 10, true);
    for (size_t i = 0; i < 60000; i++)
        entries[i].time = i % 15000 / 3 * 4 + random_u64() % 5 + 1;
    sorts(entries, 60000, 1 << 20, true);
}

/* Rounds: each adds a window of times and releases up to the end of the one before. */
static void releases_in_rounds(uint64_t memory_bytes) {
    enum { ROUNDS = 200, PER_ROUND = 100, SPAN = 1000 };
    PdOrderOptions options = {.memory_bytes = memory_bytes, .spill_folder = "/tmp"};
    _cleanup_(pd_sorter_freep) PdSorter *sorter = NULL;
    static Entry all[ROUNDS * PER_ROUND];
    uint32_t n = 0, out = 0;
    uint64_t time, last = 0;
    PdRecord record;

    CHECK_OK(pd_sorter_new(&options, &sorter));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < PER_ROUND; i++, n++) {
            all[n] = (Entry){.time = round * SPAN + random_u64() % (2 * SPAN) + 1, .number = n};
            CHECK_OK(add(sorter, all[n], 200));
        }
        pd_sorter_release(sorter, round * SPAN);
        for (int r; (r = pd_sorter_next(sorter, &record, &time)) != 0; out++) {
            CHECK_OK(r);
            CHECK(time >= last && time <= round * SPAN);
            last = time;
        }
    }
    pd_sorter_release(sorter, UINT64_MAX);
    qsort(all, n, sizeof(*all), compare);
    for (; out < n; out++)
        CHECK(next_is(sorter, all[out]));
    CHECK_EQ(pd_sorter_next(sorter, &record, &time), 0);
}

TEST(rounds_release_exactly_the_records_that_are_old_enough) {
    releases_in_rounds(0);
}

TEST(rounds_and_spilled_runs_go_together) {
    releases_in_rounds(64 << 10);
}

TEST(a_record_larger_than_the_memory_limit_passes) {
    PdOrderOptions options = {.memory_bytes = 1, .spill_folder = "/tmp"};
    _cleanup_(pd_sorter_freep) PdSorter *sorter = NULL;

    CHECK_OK(pd_sorter_new(&options, &sorter));
    for (uint32_t i = 0; i < 10; i++)
        CHECK_OK(add(sorter, (Entry){.time = 10 - i, .number = i}, PD_RECORD_SIZE_MAX));
    pd_sorter_release(sorter, UINT64_MAX);
    for (uint32_t i = 0; i < 10; i++)
        CHECK(next_is(sorter, (Entry){.time = i + 1, .number = 9 - i}));
}

TEST(a_folder_that_cannot_hold_runs_is_an_error) {
    PdOrderOptions options = {.memory_bytes = 1, .spill_folder = "/proc/nonexistent"};
    _cleanup_(pd_sorter_freep) PdSorter *sorter = NULL;
    int r = 0;

    CHECK_OK(pd_sorter_new(&options, &sorter));
    for (uint32_t i = 0; i < 3000 && r == 0; i++)
        r = add(sorter, (Entry){.time = i + 1, .number = i}, 100);
    CHECK_EQ(r, -ENOENT);
}

TEST_MAIN()
