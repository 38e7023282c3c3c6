/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/timestamp.h"

#include <sys/stat.h>
#include <time.h>

#include "test.h"
#include "util/macro.h"

/* The times that journalctl accepts, in two zones, and texts that are none. The expected values
 * come from `systemd-analyze timestamp` and `date`. */

/* Sat 2026-11-21 15:42:38.25 UTC, 16:42 in Berlin */
#define NOW      1795275758250000ULL
#define SECOND   1000000ULL
#define HOUR     (3600 * SECOND)
#define MIDNIGHT 1795219200000000ULL /* of that day, in UTC */

typedef struct Row {
    const char *text;
    uint64_t us;
} Row;

static void set_zone(const char *zone) {
    setenv("TZ", zone, 1);
    tzset();
}

#define CHECK_ROWS(rows)                                                                           \
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {                                                \
        uint64_t us = 0;                                                                           \
        int r = timestamp_parse((rows)[i].text, NOW, &us);                                         \
                                                                                                   \
        if (r < 0 || us != (rows)[i].us)                                                           \
            printf("# '%s'\n", (rows)[i].text);                                                    \
        CHECK_OK(r);                                                                               \
        CHECK_EQ(us, (rows)[i].us);                                                                \
    }

TEST(days_and_times_without_a_zone_are_local) {
    static const Row rows[] = {
        {"2026-11-21 10:00:00", MIDNIGHT + 9 * HOUR},
        {"2026-11-21 10:00", MIDNIGHT + 9 * HOUR},
        {"2026-11-21T10:00", MIDNIGHT + 9 * HOUR},
        {"2026-11-21 10:00:00.25", MIDNIGHT + 9 * HOUR + 250000},
        {"2026-11-21 10:00:00.1234567", MIDNIGHT + 9 * HOUR + 123456},
        {"26-11-21", MIDNIGHT - HOUR},
        {"2026-1-2", 1767308400000000},
        {"Sat 2026-11-21 1:2:3", MIDNIGHT + 2 * 60 * SECOND + 3 * SECOND},
        {"saturday 2026-11-21", MIDNIGHT - HOUR},
        {"10:00", MIDNIGHT + 9 * HOUR},
        {"10:00:00.000001", MIDNIGHT + 9 * HOUR + 1},
        {"Sat 10:00", MIDNIGHT + 9 * HOUR},
        {"2026-06-21 10:00", 1782028800000000}, /* in summer two hours apart */
        {"2026-10-25 12:00", 1792926000000000},
    };

    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK_ROWS(rows);
}

TEST(a_zone_may_be_named) {
    static const Row rows[] = {
        {"2026-11-21 10:00:00 UTC", MIDNIGHT + 10 * HOUR},
        {"2026-11-21T10:00:00Z", MIDNIGHT + 10 * HOUR},
        {"2026-11-21 10:00 +02:00", MIDNIGHT + 8 * HOUR},
        {"2026-11-21T10:00:00.5-0130", MIDNIGHT + 11 * HOUR + HOUR / 2 + SECOND / 2},
        {"2026-11-21 10:00+02", MIDNIGHT + 8 * HOUR},
        {"10:00 UTC", MIDNIGHT + 10 * HOUR},
        {"2026-11-21 UTC", MIDNIGHT},
        {"today UTC", MIDNIGHT},
        {"yesterday UTC", MIDNIGHT - 24 * HOUR},
    };

    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK_ROWS(rows);
}

/* A file of one zone that is always this far east of UTC, as zic writes them. */
static int make_zone(const char *path, int offset_s, const char *name) {
    uint8_t bytes[44 + 6 + 8] = "TZif";
    FILE *f = fopen(path, "w");
    size_t n;

    if (!f)
        return -errno;
    bytes[39] = 1;                           /* type */
    bytes[43] = (uint8_t)(strlen(name) + 1); /* bytes of names */
    for (int i = 0; i < 4; i++)
        bytes[44 + i] = (uint8_t)((uint32_t)offset_s >> (24 - 8 * i));
    snprintf((char *)bytes + 50, 8, "%s", name);
    n = fwrite(bytes, 1, 50 + strlen(name) + 1, f);
    return fclose(f) == 0 && n == 50 + strlen(name) + 1 ? 0 : -EIO;
}

TEST(a_zone_may_be_a_place_or_the_name_of_the_local_zone) {
    static const Row rows[] = {
        {"2026-11-21 10:00:00 Far/Off_1", MIDNIGHT + 5 * HOUR},
        {"2026-11-21 Far/Off_1", MIDNIGHT - 5 * HOUR},
        {"10:00 Far/Off_1", MIDNIGHT + 5 * HOUR},
        {"yesterday Far/Off_1", MIDNIGHT - 29 * HOUR},
        {"Sat 2026-11-21 16:42:38.25 CET", NOW},
        {"2026-11-21 16:42 CET", NOW - 38 * SECOND - 250000},
        {"2026-11-21 17:42:38.25 CEST", NOW},
        {"today CET", MIDNIGHT - HOUR},
        {"2026-11-21 10:00", MIDNIGHT + 9 * HOUR}, /* ours again */
    };
    static const char *const bad[] = {"2026-11-21 10:00 Far/Away",     "2026-11-21 10:00 Far",
                                      "2026-11-21 10:00 ../Far/Off_1", "2026-11-21 10:00 /etc",
                                      "2026-11-21 10:00 Far//Off_1",   "Far/Off_1"};
    char folder[] = "/tmp/profd-test.XXXXXX", path[64];
    uint64_t at = 0;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/Far", folder);
    CHECK_OK(mkdir(path, 0755));
    snprintf(path, sizeof(path), "%s/Far/Off_1", folder);
    CHECK_OK(make_zone(path, 5 * 3600, "FAR"));
    setenv("TZDIR", folder, 1);
    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK_ROWS(rows);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_EQ(timestamp_parse(bad[i], NOW, &at), -EINVAL);
    unsetenv("TZ");
    CHECK_OK(timestamp_parse("2026-11-21 10:00 Far/Off_1", NOW, &at));
    CHECK(getenv("TZ") == NULL);
    unsetenv("TZDIR");
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/Far", folder);
    (void)rmdir(path);
    (void)rmdir(folder);
}

TEST(words_stand_for_the_midnights_around_now) {
    static const Row rows[] = {
        {"now", NOW},
        {"today", MIDNIGHT - HOUR},
        {"yesterday", MIDNIGHT - 25 * HOUR},
        {"tomorrow", MIDNIGHT + 23 * HOUR},
    };

    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK_ROWS(rows);
}

TEST(a_day_of_a_clock_change_is_not_24_hours_long) {
    uint64_t noon = 1792926000000000, us = 0; /* 2026-10-25 12:00 CET */

    set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    CHECK_OK(timestamp_parse("today", noon, &us));
    CHECK_EQ(us, noon - 13 * HOUR);
    CHECK_OK(timestamp_parse("tomorrow", noon, &us));
    CHECK_EQ(us, noon + 12 * HOUR);
}

TEST(spans_count_from_now_and_numbers_from_1970) {
    static const Row rows[] = {
        {"-5min", NOW - 300 * SECOND},
        {"- 5 min", NOW - 300 * SECOND},
        {"5min ago", NOW - 300 * SECOND},
        {"-1h 30min", NOW - 5400 * SECOND},
        {"1h 30min ago", NOW - 5400 * SECOND},
        {"+30s", NOW + 30 * SECOND},
        {"30s left", NOW + 30 * SECOND},
        {"-500ms", NOW - SECOND / 2},
        {"-5", NOW - 5 * SECOND},
        {"-100y", 0},
        {"@123.5", 123500000},
        {"@1795275758", 1795275758000000},
        {"@0", 0},
    };

    set_zone("UTC");
    CHECK_ROWS(rows);
}

TEST(invalid_time_is_refused) {
    static const char *const bad[] = {"",
                                      " ",
                                      "-",
                                      "@",
                                      "@-5",
                                      "ago",
                                      "left",
                                      "noon",
                                      " now",
                                      "Sun 2026-11-21",
                                      "Sat",
                                      "2026-02-30",
                                      "2026-13-01",
                                      "2026-00-10",
                                      "2026-11-00",
                                      "2026-11-31",
                                      "2025-02-29",
                                      "2026-11-21 24:00",
                                      "2026-11-21 10",
                                      "2026-11-21T",
                                      "2026-11-21 10:60",
                                      "10:00:61",
                                      "10:00:00.",
                                      "2026-11-21 10:00 No/Where",
                                      "2026-11-21x",
                                      "10:00 +25:00",
                                      "10:00+2",
                                      "100:00",
                                      "20261-11-21",
                                      "-5fortnights",
                                      "--5s",
                                      "5min",
                                      "12345",
                                      "10:00:00:00",
                                      "+infinity",
                                      "2026-11-21 10:00 UTC UTC",
                                      "10:00+02:0x",
                                      "today 10:00"};
    uint64_t us = 7;

    set_zone("UTC");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int r = timestamp_parse(bad[i], NOW, &us);

        if (r != -EINVAL)
            printf("# '%s'\n", bad[i]);
        CHECK_EQ(r, -EINVAL);
    }
    CHECK_EQ(timestamp_parse("0126-01-01", NOW, &us), -ERANGE);
    CHECK_EQ(timestamp_parse("+400y", NOW, &us), -ERANGE);
    CHECK_EQ(timestamp_parse("@99999999999", NOW, &us), -ERANGE);
    CHECK_EQ(us, (uint64_t)7);
}

TEST(a_leap_day_is_accepted) {
    uint64_t us = 0;

    set_zone("UTC");
    CHECK_OK(timestamp_parse("2028-02-29 00:00:60", NOW, &us));
    CHECK_EQ(us, (uint64_t)1835395260000000);
}

TEST(an_empty_span_is_refused) {
    OptionTimestamp span = {};
    const Option row = {.long_name = "last", .argument = "SPAN"};

    CHECK_EQ(option_span(&row, "0", &span), -EINVAL);
    CHECK_EQ(option_span(&row, "soon", &span), -EINVAL);
    CHECK(!span.set);
    CHECK_OK(option_span(&row, "1h 30min", &span));
    CHECK(span.set);
    CHECK_EQ(span.us, (uint64_t)5400000000);
}

TEST_MAIN()
