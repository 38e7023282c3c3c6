/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/byte-rate.h"

#include "test.h"
#include "util/clock.h"

TEST(without_a_rate_limit_everything_passes) {
    ByteRate rate = {};

    for (unsigned i = 0; i < 10; i++)
        CHECK(byte_rate_pass(&rate, UINT64_MAX, i));
}

TEST(over_a_minute_no_more_than_the_limit_passes) {
    ByteRate rate = {};
    uint64_t passed = 0, now = 5 * NS_PER_SECOND, end = now + 60 * NS_PER_SECOND;

    byte_rate_set(&rate, 1000, now);
    for (; now < end; now += NS_PER_SECOND / 100)
        passed += byte_rate_pass(&rate, 70, now) ? 70 : 0;
    CHECK(passed >= 60 * 1000 && passed <= 61 * 1000 + 70);
}

TEST(a_batch_beyond_the_limit_passes_and_the_next_ones_wait) {
    ByteRate rate = {};

    byte_rate_set(&rate, 1000, 0);
    CHECK(byte_rate_pass(&rate, 5000, 0));
    CHECK(!byte_rate_pass(&rate, 1, 3 * NS_PER_SECOND));
    CHECK(byte_rate_pass(&rate, 1, 5 * NS_PER_SECOND));
}

TEST(a_long_pause_saves_at_most_one_second_of_bytes) {
    ByteRate rate = {};

    byte_rate_set(&rate, 1000, 0);
    CHECK(byte_rate_pass(&rate, 1000, UINT64_MAX / 2));
    CHECK(!byte_rate_pass(&rate, 1, UINT64_MAX / 2));
}

TEST(frequent_calls_do_not_lose_fractions_of_the_rate) {
    ByteRate rate = {};
    unsigned passed = 0;

    byte_rate_set(&rate, 1024, 0);
    CHECK(byte_rate_pass(&rate, 1024, 0));
    for (uint64_t now = 0; now < NS_PER_SECOND; now += 100000)
        passed += byte_rate_pass(&rate, 1, now);
    CHECK(passed >= 1000 && passed <= 1024);
}

TEST(a_clock_that_stands_or_goes_back_adds_nothing) {
    ByteRate rate = {};

    byte_rate_set(&rate, 10, 100 * NS_PER_SECOND);
    CHECK(byte_rate_pass(&rate, 10, 100 * NS_PER_SECOND));
    CHECK(!byte_rate_pass(&rate, 10, 50 * NS_PER_SECOND));
}

TEST_MAIN()
