/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/figure.h"

#include "test.h"
#include "util/text.h"

#define SECOND 1000000ULL
#define DAY    (86400 * SECOND)

/* The buffer as a string, emptied for the next. */
static const char *taken(Buffer *b) {
    static char text[128];

    text_putc(b, '\0');
    snprintf(text, sizeof(text), "%s", (const char *)b->data);
    buffer_clear(b);
    return text;
}

TEST(sizes_have_one_decimal_and_a_power_of_1024) {
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0B"},
                 {1023, "1023B"},
                 {1024, "1.0K"},
                 {1536, "1.5K"},
                 {1048575, "1023.9K"},
                 {64ULL << 20, "64.0M"},
                 {1ULL << 40, "1.0T"},
                 {UINT64_MAX, "15.9E"}};
    _cleanup_(buffer_done) Buffer b = {};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        figure_size(&b, cases[i].bytes);
        CHECK_STREQ(taken(&b), cases[i].text);
    }
}

TEST(counts_are_grouped_by_thousands) {
    _cleanup_(buffer_done) Buffer b = {};

    figure_count(&b, 999);
    CHECK_STREQ(taken(&b), "999");
    figure_count(&b, 1000);
    CHECK_STREQ(taken(&b), "1,000");
    figure_count(&b, UINT64_MAX);
    CHECK_STREQ(taken(&b), "18,446,744,073,709,551,615");
}

TEST(spans_show_their_two_largest_units) {
    static const struct {
        uint64_t us;
        const char *text;
    } cases[] = {{0, "0"},
                 {7, "7 us"},
                 {1234, "1 ms"},
                 {59 * SECOND + 999999, "59 s"},
                 {60 * SECOND, "1 min"},
                 {320 * SECOND, "5 min 20 s"},
                 {5400 * SECOND, "1 h 30 min"},
                 {3600 * SECOND + 30, "1 h"},
                 {DAY, "1 day"},
                 {2 * DAY + 3 * 3600 * SECOND, "2 days 3 h"},
                 {8 * DAY, "1 week 1 day"},
                 {400 * DAY, "1 year 1 month"}};
    _cleanup_(buffer_done) Buffer b = {};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        figure_span(&b, cases[i].us);
        CHECK_STREQ(taken(&b), cases[i].text);
    }
}

TEST(times_are_shown_in_the_local_zone_with_its_name) {
    _cleanup_(buffer_done) Buffer b = {};
    uint64_t us = 1795273200 * SECOND;

    (void)setenv("TZ", "UTC", 1);
    tzset();
    figure_moment(&b, us);
    CHECK_STREQ(taken(&b), "Sat 2026-11-21 15:00:00 UTC");
    figure_moment_short(&b, us);
    CHECK_STREQ(taken(&b), "2026-11-21 15:00:00");
    (void)setenv("TZ", "CET-1", 1);
    tzset();
    figure_moment(&b, us);
    CHECK_STREQ(taken(&b), "Sat 2026-11-21 16:00:00 CET");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    figure_since(&b, us, us + 300 * SECOND);
    CHECK_STREQ(taken(&b), "Sat 2026-11-21 15:00:00 UTC (5 min ago)");
}

TEST(future_time_is_printed_as_future) {
    _cleanup_(buffer_done) Buffer b = {};

    figure_ago(&b, 10 * SECOND, 10 * SECOND + 5);
    CHECK_STREQ(taken(&b), "now");
    figure_ago(&b, 40 * SECOND, 10 * SECOND);
    CHECK_STREQ(taken(&b), "in 30 s");
    figure_ago(&b, 10 * SECOND, 40 * SECOND);
    CHECK_STREQ(taken(&b), "30 s ago");
}

TEST(a_time_beyond_the_calendar_is_a_number) {
    _cleanup_(buffer_done) Buffer b = {};

    figure_moment(&b, UINT64_MAX);
    CHECK(strlen(taken(&b)) > 0);
}

TEST_MAIN()
