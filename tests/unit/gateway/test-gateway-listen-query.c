/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "listen/listen-query.h"
#include "test.h"
#include "util/clock.h"

/* What the query of a request for a profile means. */

#define NOW_NS (1800000000 * NS_PER_SECOND)

static ListenQuery query;

static int parse(const char *text) {
    const char *problem = NULL;
    int r = listen_query_parse(text, NOW_NS, &query, &problem);

    return r == -EINVAL && !problem ? -ENOMSG : r;
}

static const char *problem_of(const char *text) {
    const char *problem = NULL;

    return listen_query_parse(text, NOW_NS, &query, &problem) == -EINVAL && problem ? problem : "";
}

TEST(without_a_query_it_is_the_past_half_minute) {
    CHECK_OK(parse(NULL));
    CHECK_EQ(query.until_ns, NOW_NS);
    CHECK_EQ(query.since_ns, NOW_NS - 30 * NS_PER_SECOND);
    CHECK(!query.has_pid);
    CHECK_STREQ(query.unit, "");
    CHECK_OK(parse(""));
    CHECK_EQ(query.since_ns, NOW_NS - 30 * NS_PER_SECOND);
}

TEST(seconds_are_those_that_have_passed) {
    CHECK_OK(parse("seconds=14"));
    CHECK_EQ(query.since_ns, NOW_NS - 14 * NS_PER_SECOND);
    CHECK_EQ(query.until_ns, NOW_NS);
    CHECK_OK(parse("seconds=3600"));
    CHECK_EQ(parse("seconds=3601"), -EINVAL);
    CHECK_EQ(parse("seconds=0"), -EINVAL);
    CHECK_EQ(parse("seconds=-1"), -EINVAL);
    CHECK_EQ(parse("seconds=1.5"), -EINVAL);
    CHECK_EQ(parse("seconds="), -EINVAL);
    CHECK_EQ(parse("seconds"), -EINVAL);
    CHECK_EQ(parse("seconds=18446744073709551617"), -EINVAL);
    CHECK_STREQ(problem_of("seconds=x"), "seconds= is a number from 1 to 3600.");
}

TEST(since_is_a_time_or_a_span) {
    CHECK_OK(parse("since=1799999900&seconds=10"));
    CHECK_EQ(query.since_ns, NOW_NS - 100 * NS_PER_SECOND);
    CHECK_EQ(query.until_ns, NOW_NS - 90 * NS_PER_SECOND);
    CHECK_OK(parse("seconds=10&since=1799999900.25"));
    CHECK_EQ(query.since_ns, NOW_NS - 99750 * NS_PER_MS);
    CHECK_OK(parse("since=-10min"));
    CHECK_EQ(query.since_ns, NOW_NS - 600 * NS_PER_SECOND);
    CHECK_EQ(query.until_ns, NOW_NS);
    CHECK_OK(parse("since=-1h+30min&seconds=60"));
    CHECK_EQ(query.since_ns, NOW_NS - 5400 * NS_PER_SECOND);
    CHECK_EQ(query.until_ns, NOW_NS - 5340 * NS_PER_SECOND);
    /* What has not happened yet is not waited for. */
    CHECK_OK(parse("since=-5s&seconds=60"));
    CHECK_EQ(query.until_ns, NOW_NS);
}

TEST(since_has_bounds) {
    CHECK_EQ(parse("since=1800000000"), -EINVAL);
    CHECK_EQ(parse("since=1800000001"), -EINVAL);
    CHECK_EQ(parse("since=-0s"), -EINVAL);
    CHECK_EQ(parse("since=-100y"), -EINVAL);
    CHECK_EQ(parse("since=yesterday"), -EINVAL);
    CHECK_EQ(parse("since=18446744073709551615"), -EINVAL);
    CHECK_OK(parse("since=-1h"));
    CHECK_EQ(parse("since=-61min"), -EINVAL);
    CHECK_STREQ(problem_of("since=0"), "That is more than an hour; give seconds= as well.");
    CHECK_OK(parse("since=0&seconds=1"));
    CHECK_EQ(query.until_ns, NS_PER_SECOND);
}

TEST(unit_and_pid_select) {
    CHECK_OK(parse("unit=nginx.service&pid=4711"));
    CHECK_STREQ(query.unit, "nginx.service");
    CHECK(query.has_pid);
    CHECK_EQ(query.pid, 4711);
    CHECK_OK(parse("unit=system-getty%2Dx.slice%5cx+y"));
    CHECK_STREQ(query.unit, "system-getty-x.slice\\x y");
    CHECK_EQ(parse("unit="), -EINVAL);
    CHECK_EQ(parse("unit=a%00b"), -EINVAL);
    CHECK_EQ(parse("unit=a%2"), -EINVAL);
    CHECK_EQ(parse("unit=a%"), -EINVAL);
    CHECK_EQ(parse("unit=a%zz"), -EINVAL);
    CHECK_EQ(parse("pid=2147483648"), -EINVAL);
    CHECK_EQ(parse("pid=self"), -EINVAL);
}

TEST(percent_sign_at_the_end_of_a_value_is_decoded) {
    CHECK_OK(parse("unit=a%2e&pid=1"));
    CHECK_STREQ(query.unit, "a.");
    CHECK_OK(parse("unit=%41"));
    CHECK_STREQ(query.unit, "A");
}

TEST(unknown_and_repeated_parameters_are_refused) {
    CHECK_EQ(parse("second=10"), -EINVAL);
    CHECK_EQ(parse("seconds=10&seconds=20"), -EINVAL);
    CHECK_EQ(parse("=10"), -EINVAL);
    CHECK_OK(parse("&&seconds=10&"));
    CHECK_STREQ(problem_of("units=a"),
                "The parameters are seconds, since, unit and pid, each at most once.");
}

TEST(long_values_and_queries_are_refused) {
    char text[LISTEN_QUERY_MAX + 16];

    memset(text, 'u', sizeof(text));
    memcpy(text, "unit=", 5);
    text[5 + LISTEN_UNIT_MAX] = '\0';
    CHECK_OK(parse(text));
    CHECK_EQ(strlen(query.unit), (size_t)LISTEN_UNIT_MAX);
    text[5 + LISTEN_UNIT_MAX] = 'u';
    text[6 + LISTEN_UNIT_MAX] = '\0';
    CHECK_EQ(parse(text), -EINVAL);
    memset(text, '&', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    CHECK_STREQ(problem_of(text), "The query is too long.");
}

static Bytes bytes_of(const char *text) {
    return (Bytes){.data = (const uint8_t *)text, .size = strlen(text)};
}

TEST(addresses_are_taken_one_by_one) {
    Bytes text = bytes_of("0xffffffff81000000+401000+0XAb");
    uint64_t address;

    CHECK_EQ(listen_query_take_address(&text, &address), 1);
    CHECK_EQ(address, UINT64_C(0xffffffff81000000));
    CHECK_EQ(listen_query_take_address(&text, &address), 1);
    CHECK_EQ(address, 0x401000);
    CHECK_EQ(listen_query_take_address(&text, &address), 1);
    CHECK_EQ(address, 0xab);
    CHECK_EQ(listen_query_take_address(&text, &address), 0);
}

TEST(text_that_is_no_list_of_addresses_is_refused) {
    static const char *const texts[] = {"0x",   "+", "0x1 0x2", "hello", "0x12345678901234567",
                                        "0x1\n"};
    uint64_t address;

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        Bytes text = bytes_of(texts[i]);

        CHECK_EQ(listen_query_take_address(&text, &address), -EINVAL);
    }
}

TEST_MAIN()
