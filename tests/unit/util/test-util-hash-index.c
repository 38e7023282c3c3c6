/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/hash-index.h"

#include "test.h"

/* Rows of an array, found by their key. */

enum { ROWS = 5000 };

static uint64_t key_of(uint32_t row) {
    return row * 0x100000000ULL;
}

static uint32_t find(const HashIndex *index, uint64_t key) {
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(index, key, &probe)) > 0;)
        if (key_of(number - 1) == key)
            return number;
    return 0;
}

TEST(an_empty_index_finds_nothing) {
    HashIndex index = {};

    CHECK_EQ(find(&index, 0), 0U);
    hash_index_done(&index);
}

TEST(each_row_is_found_by_its_key_after_the_index_has_grown) {
    HashIndex index = {};

    for (uint32_t row = 0; row < ROWS; row++) {
        CHECK_EQ(find(&index, key_of(row)), 0U);
        CHECK_OK(hash_index_add(&index, key_of(row)));
    }
    for (uint32_t row = 0; row < ROWS; row++)
        CHECK_EQ(find(&index, key_of(row)), row + 1);
    CHECK_EQ(find(&index, key_of(ROWS)), 0U);
    CHECK(index.n_slots >= 2 * (size_t)ROWS);
    hash_index_done(&index);
}

TEST(rows_with_the_same_key_are_proposed_one_after_another) {
    HashIndex index = {};
    size_t probe = 0;

    CHECK_OK(hash_index_add(&index, 7));
    CHECK_OK(hash_index_add(&index, 7));
    CHECK_EQ(hash_index_next(&index, 7, &probe), 1U);
    CHECK_EQ(hash_index_next(&index, 7, &probe), 2U);
    CHECK_EQ(hash_index_next(&index, 7, &probe), 0U);
    hash_index_done(&index);
}

TEST_MAIN()
