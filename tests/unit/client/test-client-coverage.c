/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/coverage-text.h"

#include <stdlib.h>
#include <time.h>

#include "client/frame/figure.h"
#include "test.h"

/* The sentence for what was recorded of a window. */

#define US  1000000ULL /* microseconds in a second */
#define MS  1000000ULL
#define SEC (1000 * MS)
#define DAY 1000000800ULL /* 2001-09-09 02:00:00 UTC */

static const char *describe(uint64_t span_ns, const PdGap *gaps, size_t n) {
    static Buffer text;
    PdCoverage coverage = {.from_ns = DAY * SEC, .to_ns = DAY * SEC + span_ns};

    buffer_clear(&text);
    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < n; i++) {
        PdGap gap = gaps[i];

        gap.from_ns += DAY * SEC;
        gap.to_ns += DAY * SEC;
        (void)pd_coverage_add_gap(&coverage, &gap);
    }
    coverage_describe(&text, &coverage);
    buffer_append(&text, "", 1);
    pd_coverage_done(&coverage);
    return (const char *)text.data;
}

TEST(a_whole_window_has_no_gaps) {
    CHECK_STREQ(describe(60 * SEC, NULL, 0), "no gaps");
}

TEST(a_gap_is_named_with_its_times_and_its_reason) {
    const PdGap gap = {
        .from_ns = 10 * SEC, .to_ns = 40 * SEC, .cpu = PD_ALL_CPUS, .reason = PD_GAP_STOPPED};

    CHECK_STREQ(describe(60 * SEC, &gap, 1),
                "30 s of 1 min, not recorded 2001-09-09 02:00:10 to 02:00:40 (stopped)");
}

TEST(a_gap_below_two_seconds_has_milliseconds) {
    const PdGap gap = {.from_ns = 10 * SEC + 312 * MS,
                       .to_ns = 10 * SEC + 342 * MS,
                       .cpu = PD_ALL_CPUS,
                       .reason = PD_GAP_RELOADED};

    CHECK_STREQ(describe(60 * SEC, &gap, 1),
                "all but 30 ms of 1 min, not recorded 2001-09-09 02:00:10.312 to 02:00:10.342 "
                "(configuration reloaded)");
}

TEST(a_gap_of_one_cpu_is_not_taken_off_the_time) {
    const PdGap gaps[] = {
        {.from_ns = 10 * SEC, .to_ns = 40 * SEC, .cpu = 1, .reason = PD_GAP_LOST},
        {.from_ns = 45 * SEC, .to_ns = 50 * SEC, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED}};

    CHECK_STREQ(describe(60 * SEC, gaps, 1),
                "not recorded 2001-09-09 02:00:10 to 02:00:40 on CPU 1 (samples lost)");
    CHECK_STREQ(describe(60 * SEC, gaps, 2),
                "55 s of 1 min, not recorded 2001-09-09 02:00:10 to 02:00:40 on CPU 1 (samples "
                "lost), 2001-09-09 02:00:45 to 02:00:50 (paused)");
}

/* A page is read on another day, in another zone. */
TEST(times_for_a_page_have_the_day_and_the_zone) {
    static const struct {
        const char *zone;
        uint64_t since_us, until_us;
        const char *text;
    } rows[] = {
        {"UTC", 0, 300 * US, "2001-09-09 02:00:00 to 02:05:00 UTC"},
        {"CET-1", 0, 300 * US, "2001-09-09 03:00:00 to 03:05:00 CET"},
        {"<-03>3", 0, US, "2001-09-08 23:00:00.000 to 23:00:01.000 -03"},
        {"UTC", 0, 86400 * US, "2001-09-09 02:00:00 to 2001-09-10 02:00:00 UTC"},
        {"AAA-1BBB,J252/4,J300/4", 0, 7200 * US, "2001-09-09 03:00:00 AAA to 06:00:00 BBB"},
    };
    const PdGap gap = {.from_ns = DAY * SEC, .to_ns = DAY * SEC + 30 * SEC, .cpu = PD_ALL_CPUS};
    PdCoverage coverage = {.from_ns = DAY * SEC, .to_ns = DAY * SEC + 60 * SEC};
    _cleanup_(buffer_done) Buffer text = {};

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        buffer_clear(&text);
        setenv("TZ", rows[i].zone, 1);
        tzset();
        coverage_times_for_page(&text, DAY * US + rows[i].since_us, DAY * US + rows[i].until_us);
        buffer_append(&text, "", 1);
        CHECK_STREQ((const char *)text.data, rows[i].text);
    }
    setenv("TZ", "UTC", 1);
    tzset();
    buffer_clear(&text);
    CHECK_OK(pd_coverage_add_gap(&coverage, &gap));
    coverage_describe_for_page(&text, &coverage);
    buffer_append(&text, "", 1);
    pd_coverage_done(&coverage);
    CHECK(strstr((const char *)text.data, "not recorded 2001-09-09 02:00:00 to 02:00:30 UTC ("));
    /* Also today. */
    buffer_clear(&text);
    coverage_times_for_page(&text, figure_now_us(), figure_now_us());
    CHECK_EQ(text.data[4], '-');
    CHECK(memmem(text.data, text.size, " UTC", 4));
}

TEST_MAIN()
