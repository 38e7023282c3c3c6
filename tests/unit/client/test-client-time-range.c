/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/time-range.h"

#include "test.h"

static const Option row = {.long_name = "time", .argument = "START,END"};

TEST(a_range_may_be_open_at_either_end) {
    TimeRange range;

    CHECK_OK(option_time_range(&row, "1.5,2", &range));
    CHECK(range.set && !range.percent);
    CHECK_EQ(range.from, 1500000000U);
    CHECK_EQ(range.to, 2000000000U);
    CHECK_OK(option_time_range(&row, ",2", &range));
    CHECK_EQ(range.from, 0U);
    CHECK_OK(option_time_range(&row, "3.000000001,", &range));
    CHECK_EQ(range.from, 3000000001U);
    CHECK_EQ(range.to, UINT64_MAX);
}

TEST(a_range_includes_both_ends) {
    TimeRange range;

    CHECK_OK(option_time_range(&row, "1,2", &range));
    CHECK(time_range_holds(&range, 1000000000));
    CHECK(time_range_holds(&range, 2000000000));
    CHECK(!time_range_holds(&range, 999999999));
    CHECK(!time_range_holds(&range, 2000000001));
}

TEST(percentages_are_shares_of_the_span) {
    TimeRange range;

    CHECK_OK(option_time_range(&row, "10%-12.5%", &range));
    CHECK(range.percent);
    time_range_resolve(&range, 1000, 2000);
    CHECK_EQ(range.from, 1100U);
    CHECK_EQ(range.to, 1125U);
    CHECK_OK(option_time_range(&row, "10%/2", &range));
    time_range_resolve(&range, 1000, 2000);
    CHECK_EQ(range.from, 1100U);
    CHECK_EQ(range.to, 1200U);
}

TEST(percentages_of_the_longest_span_do_not_overflow) {
    TimeRange range;

    CHECK_OK(option_time_range(&row, "0%-100%", &range));
    time_range_resolve(&range, 0, UINT64_MAX);
    CHECK_EQ(range.from, 0U);
    CHECK_EQ(range.to, UINT64_MAX);
}

TEST(invalid_range_is_refused) {
    static const char *const cases[] = {
        "",     "5",     "2,1",   "a,b",  "1,2,3",    "%",       "10%",      "20%-10%",
        "0%/1", "10%/0", "60%/2", "-5,1", "10%-101%", "10%/1.5", "1%-2%-3%", "1e9,",
    };
    TimeRange range = {};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CHECK(option_time_range(&row, cases[i], &range) < 0);
        CHECK(!range.set);
    }
}

TEST_MAIN()
