/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/cutter.h"
#include "test.h"

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

TEST(clock_that_is_set_ends_the_interval_either_way) {
    Cutter forward = begun(7), backward = begun(7);

    CHECK(cutter_mark(&forward, 8 * SECOND, OFFSET + 3600 * SECOND));
    cutter_restart(&forward, 8 * SECOND, OFFSET + 3600 * SECOND);
    CHECK_EQ(forward.since_ns, 4600 * SECOND);
    CHECK(cutter_mark(&backward, 8 * SECOND, OFFSET - 500 * SECOND));
    cutter_restart(&backward, 8 * SECOND, OFFSET - 500 * SECOND);
    CHECK_EQ(backward.since_ns, 500 * SECOND);
    CHECK_EQ(backward.until_ns, 510 * SECOND);
}

TEST(time_far_ahead_is_jumped_to) {
    Cutter cutter = begun(7);

    cutter_advance(&cutter, 10 * SECOND + CUTTER_JUMP * 10 * SECOND);
    CHECK_EQ(cutter.since_ns, 1010 * SECOND);
    cutter_advance(&cutter, 1000000 * SECOND + 3);
    CHECK_EQ(cutter.since_ns, 1001000 * SECOND);
}

TEST_MAIN()
