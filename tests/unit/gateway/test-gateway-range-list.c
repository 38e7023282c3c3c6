/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/range-list.h"

#include "test.h"
#include "util/macro.h"

/* Spans that are added and removed, beside a plain array of what is in the list. */

enum { SLOTS = 300, STEPS = 20000 };

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static bool is_in(const RangeList *list, uint64_t slot) {
    return range_list_has(list, (Range){slot * 10, slot * 10 + 10});
}

TEST(any_sequence_of_changes_has_the_result_of_a_plain_array) {
    static RangeList list;
    bool plain[SLOTS] = {};
    uint64_t seed = 1;

    for (unsigned step = 0; step < STEPS; step++) {
        uint64_t first = next_random(&seed) % SLOTS, n = next_random(&seed) % 9;
        uint64_t end = first + n < SLOTS ? first + n : SLOTS, total = 0;
        bool adds = next_random(&seed) % 2 == 0;
        Range range = {first * 10, end * 10};

        CHECK_EQ(adds ? range_list_add(&list, range) : range_list_remove(&list, range), 0);
        for (uint64_t i = first; i < end; i++)
            plain[i] = adds;
        CHECK(range_list_is_valid(&list));
        for (uint64_t i = 0; i < SLOTS; i++) {
            CHECK_EQ(is_in(&list, i), plain[i]);
            total += plain[i] ? 10 : 0;
        }
        CHECK_EQ(range_list_total(&list), total);
    }
}

TEST(full_list_drops_the_oldest_and_says_how_much) {
    static RangeList list;

    for (uint64_t i = 0; i < RANGES_MAX; i++)
        CHECK_EQ(range_list_add(&list, (Range){i * 100 + 50, i * 100 + 57}), 0);
    CHECK_EQ(range_list_add(&list, (Range){1000000, 1000003}), 7);
    CHECK_EQ(list.n, RANGES_MAX);
    CHECK_EQ(list.items[0].since_ns, 150);
    CHECK(range_list_has(&list, (Range){1000000, 1000003}));
    /* What is older than all others is itself the oldest. */
    CHECK_EQ(range_list_add(&list, (Range){1, 3}), 2);
    /* Two halves need one more place than a whole. */
    CHECK_EQ(range_list_remove(&list, (Range){252, 253}), 7);
    CHECK_EQ(list.n, RANGES_MAX);
    CHECK(range_list_is_valid(&list));
}

TEST(expired_time_is_counted_once) {
    static RangeList list;

    range_list_add(&list, (Range){100, 200});
    range_list_add(&list, (Range){300, 400});
    CHECK_EQ(range_list_expire(&list, 350), 150);
    CHECK_EQ(range_list_expire(&list, 350), 0);
    CHECK_EQ(range_list_total(&list), 50);
}

TEST(disorder_is_not_valid) {
    static RangeList list = {.items = {{10, 20}, {20, 30}}, .n = 2};

    CHECK(!range_list_is_valid(&list));
    list.items[1] = (Range){25, 25};
    CHECK(!range_list_is_valid(&list));
    list.items[1] = (Range){5, 8};
    CHECK(!range_list_is_valid(&list));
    list.items[1] = (Range){25, 26};
    CHECK(range_list_is_valid(&list));
}

TEST(any_part_of_a_range_may_be_in_a_list) {
    RangeList *list = calloc(1, sizeof(*list));
    static const Range in[] = {{5, 15}, {19, 21}, {29, 41}, {10, 11}};
    static const Range out[] = {{0, 10}, {20, 30}, {21, 29}, {40, 50}};

    CHECK(list);
    range_list_add(list, (Range){10, 20});
    range_list_add(list, (Range){30, 40});
    for (size_t i = 0; i < ARRAY_SIZE(in); i++)
        CHECK(range_list_meets(list, in[i]));
    for (size_t i = 0; i < ARRAY_SIZE(out); i++)
        CHECK(!range_list_meets(list, out[i]));
    free(list);
}

TEST_MAIN()
