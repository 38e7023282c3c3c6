/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/parse.h"

#include "test.h"
#include "util/macro.h"

/* Sizes, spans and booleans as systemd reads them, and what is none. */

TEST(sizes_are_powers_of_1024) {
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},          {"512", 512},         {"512K", 524288},
                {"64M", 67108864}, {"1.5G", 1610612736}, {"2T", 2199023255552},
                {"64m", 67108864}};
    static const char *const bad[] = {"",    "M",    "-1", "+1", "1X",
                                      "1 2", "0x10", "1.", ".5", "64MiB!"};
    uint64_t v = 7;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK_OK(parse_size(good[i].text, &v));
        CHECK_EQ(v, good[i].bytes);
    }
    v = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_EQ(parse_size(bad[i], &v), -EINVAL);
    CHECK_EQ(parse_size("99999999999999999999", &v), -ERANGE);
    CHECK_EQ(parse_size("16777216T", &v), -ERANGE);
    CHECK_EQ(v, (uint64_t)7);
}

TEST(units_of_a_time_span_are_added) {
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"5", 5000000000},           {"500ms", 500000000},       {"10min", 600000000000},
        {"1h 30min", 5400000000000}, {"1h30min", 5400000000000}, {"7d", 604800000000000},
        {"0.5s", 500000000},         {"20 us", 20000},           {"2\u00b5s", 2000},
        {"1m", 60000000000},         {"1M", 2629800000000000},   {"1y 1week", 32162400000000000},
        {"1h30", 3630000000000}};
    static const char *const bad[] = {"",      "s",    "1fortnight", "-5s", "5s,",
                                      "1..5s", "1Min", "5S",         "1MS", "1\u00b5"};
    uint64_t v = 7;

    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        CHECK_OK(parse_span(good[i].text, &v));
        CHECK_EQ(v, good[i].ns);
    }
    v = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK_EQ(parse_span(bad[i], &v), -EINVAL);
    CHECK_EQ(parse_span("99999999d", &v), -ERANGE);
    CHECK_EQ(v, (uint64_t)7);
}

TEST(booleans_have_four_spellings_each) {
    bool v = false;

    CHECK_OK(parse_bool("Yes", &v));
    CHECK(v);
    CHECK_OK(parse_bool("0", &v));
    CHECK(!v);
    CHECK_EQ(parse_bool("maybe", &v), -EINVAL);
    CHECK_EQ(parse_bool("", &v), -EINVAL);
}

TEST_MAIN()
