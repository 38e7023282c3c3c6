/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/cutter.h"
#include "test.h"
#include "util/macro.h"

/* The clocks of these tests differ by OFFSET: second 5 of the stream is second 1005 of the wall. */

#define SECOND 1000000000ULL
#define OFFSET (1000 * SECOND)

static Cutter begun(uint64_t at_second) {
    Cutter cutter;

    cutter_begin(&cutter, 10 * SECOND, at_second * SECOND + OFFSET, OFFSET);
    return cutter;
}

TEST(interval_begins_at_a_multiple_of_its_length) {
    Cutter cutter = begun(7);

    CHECK_EQ(cutter.since_ns, 1000 * SECOND);
    CHECK_EQ(cutter.until_ns, 1010 * SECOND);
}

TEST(sample_behind_the_end_ends_the_interval) {
    Cutter cutter = begun(7);

    CHECK(!cutter_is_behind(&cutter, 10 * SECOND - 1));
    CHECK(cutter_is_behind(&cutter, 10 * SECOND));
    cutter_advance(&cutter, 10 * SECOND);
    CHECK_EQ(cutter.since_ns, 1010 * SECOND);
    CHECK_EQ(cutter.until_ns, 1020 * SECOND);
    CHECK(!cutter_is_behind(&cutter, 10 * SECOND));
}

TEST(second_watermark_after_the_end_ends_the_interval_of_an_idle_host) {
    Cutter cutter = begun(7);

    CHECK(!cutter_mark(&cutter, 9 * SECOND, OFFSET));
    CHECK(!cutter_mark(&cutter, 10 * SECOND, OFFSET));
    CHECK(!cutter_is_complete(&cutter));
    CHECK(!cutter_mark(&cutter, 11 * SECOND, OFFSET));
    CHECK(cutter_is_complete(&cutter));
    cutter_advance(&cutter, 11 * SECOND);
    CHECK(!cutter_is_complete(&cutter));
}

TEST(watermarks_of_another_stream_count_anew) {
    Cutter cutter = begun(7);

    CHECK(!cutter_mark(&cutter, 11 * SECOND, OFFSET));
    cutter_resume(&cutter);
    CHECK(!cutter_mark(&cutter, 12 * SECOND, OFFSET));
    CHECK(!cutter_is_complete(&cutter));
    CHECK(!cutter_mark(&cutter, 13 * SECOND, OFFSET));
    CHECK(cutter_is_complete(&cutter));
}

TEST(difference_of_the_clocks_is_kept_unless_the_clock_was_set) {
    EdgeClock clock = {};

    CHECK_EQ(edge_clock_of(&clock, OFFSET + 3), OFFSET + 3);
    CHECK_EQ(edge_clock_adopt(&clock, OFFSET), OFFSET);
    CHECK_EQ(edge_clock_adopt(&clock, OFFSET + 5000), OFFSET);
    CHECK_EQ(edge_clock_adopt(&clock, OFFSET - 5000), OFFSET);
    CHECK_EQ(edge_clock_of(&clock, OFFSET - SECOND), OFFSET - SECOND);
    CHECK_EQ(edge_clock_of(&clock, OFFSET), OFFSET);
    CHECK_EQ(edge_clock_adopt(&clock, OFFSET + SECOND / 100), OFFSET + SECOND / 100);
    CHECK_EQ(edge_clock_of(&clock, OFFSET + SECOND / 100 + 7), OFFSET + SECOND / 100);
}

TEST(clock_that_is_adjusted_moves_the_cut_and_is_no_step) {
    Cutter cutter = begun(7);

    CHECK(!cutter_mark(&cutter, 8 * SECOND, OFFSET + 1000));
    CHECK(cutter_is_behind(&cutter, 10 * SECOND - 1000));
    CHECK(!cutter_is_behind(&cutter, 10 * SECOND - 1001));
}

TEST(interval_into_which_the_clock_is_set_is_torn) {
    static const struct {
        int64_t step_s;
        uint64_t since_s;
    } rows[] = {{3600, 4600}, {10, 1010}, {1, 1000}, {-1, 1000}, {-7, 1000}};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        Cutter cutter = begun(7);
        uint64_t offset = OFFSET + (uint64_t)rows[i].step_s * SECOND;

        CHECK(cutter_mark(&cutter, 8 * SECOND, offset));
        CHECK(!cutter_comes_again(&cutter, 8 * SECOND, offset));
        cutter_restart(&cutter, 8 * SECOND, offset);
        CHECK(cutter.is_torn);
        CHECK_EQ(cutter.since_ns, rows[i].since_s * SECOND);
        CHECK_EQ(cutter.until_ns, (rows[i].since_s + 10) * SECOND);
        cutter_advance(&cutter, cutter.until_ns - offset);
        CHECK(!cutter.is_torn);
        CHECK_EQ(cutter.since_ns, (rows[i].since_s + 10) * SECOND);
    }
}

TEST(no_bounds_are_used_twice_when_times_come_again) {
    const uint64_t shift = SECOND / 100;
    Cutter cutter = begun(7);

    for (unsigned i = 1; i <= 2; i++) {
        uint64_t offset = OFFSET - i * 500 * SECOND;

        CHECK(cutter_mark(&cutter, 8 * SECOND, offset));
        CHECK(cutter_comes_again(&cutter, 8 * SECOND, offset));
        cutter_restart(&cutter, 8 * SECOND, offset);
        CHECK(!cutter.is_torn);
        CHECK_EQ(cutter.since_ns, (1000 - i * 500) * SECOND + i * shift);
        CHECK_EQ(cutter.until_ns, cutter.since_ns + 10 * SECOND);
    }
    CHECK(cutter_is_behind(&cutter, 10 * SECOND + 2 * shift));
    CHECK(!cutter_is_behind(&cutter, 10 * SECOND + shift));
    cutter_advance(&cutter, 1000000 * SECOND + 3);
    CHECK_EQ(cutter.since_ns, (1000000 - 10) * SECOND + 2 * shift);
}

/* The bounds are shifted, so the first interval may begin before the time that the clock shows. */
TEST(interval_after_a_step_back_has_the_time_that_the_clock_shows) {
    Cutter cutter = begun(7);
    uint64_t offset = OFFSET - 508 * SECOND;

    CHECK(cutter_mark(&cutter, 8 * SECOND, offset));
    cutter_restart(&cutter, 8 * SECOND, offset);
    CHECK_EQ(cutter.since_ns, 490 * SECOND + SECOND / 100);
    CHECK_EQ(cutter.until_ns, 500 * SECOND + SECOND / 100);
}

TEST(time_far_ahead_is_jumped_to) {
    Cutter cutter = begun(7);

    cutter_advance(&cutter, 10 * SECOND + CUTTER_JUMP * 10 * SECOND);
    CHECK_EQ(cutter.since_ns, 1010 * SECOND);
    cutter_advance(&cutter, 1000000 * SECOND + 3);
    CHECK_EQ(cutter.since_ns, 1001000 * SECOND);
}

TEST_MAIN()
