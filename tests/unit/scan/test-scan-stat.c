/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/stat.h"

#include "test.h"

/* The stat line of processes that call themselves anything. */

#define REST " S 7 3 3 0 -1 2097216 1 0 0 0 0 0 -5 0 20 0 12 0 987654 0 0 184 0 0\n"

static int parse(const char *text, ProcessStat *ret) {
    return process_stat_parse((Bytes){.data = (const uint8_t *)text, .size = strlen(text)}, ret);
}

TEST(fields_are_counted_from_the_end_of_the_comm) {
    static const char *const comms[] = {"sh", "a b", "x) R 1 (y", ")", "(", "", "((", "\n) Z 0"};
    char text[256];
    ProcessStat stat;

    for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
        snprintf(text, sizeof(text), "42 (%s)" REST, comms[i]);
        CHECK_OK(parse(text, &stat));
        CHECK_STREQ(stat.comm, comms[i]);
        CHECK_EQ(stat.state, 'S');
        CHECK_EQ(stat.ppid, 7U);
        CHECK_EQ(stat.flags, 2097216U);
        CHECK_EQ(stat.n_threads, 12U);
        CHECK_EQ(stat.start_ticks, 987654U);
    }
}

TEST(a_comm_is_truncated_to_the_length_of_the_kernel) {
    ProcessStat stat;

    CHECK_OK(parse("42 (0123456789abcdefgh)" REST, &stat));
    CHECK_STREQ(stat.comm, "0123456789abcde");
}

TEST(a_kernel_worker_has_its_name_without_its_current_work) {
    static const struct {
        const char *shown, *name;
    } workers[] = {
        {"kworker/0:1-events", "kworker/0:1"}, {"kworker/u8:2+flush-254:0", "kworker/u8:2"},
        {"kworker/1:0H", "kworker/1:0H"},      {"kworker/R-mm_percpu_wq", "kworker/R-mm_pe"},
        {"kworker-fake", "kworker-fake"},      {"ksoftirqd/0", "ksoftirqd/0"},
    };
    char comm[16];

    for (size_t i = 0; i < sizeof(workers) / sizeof(workers[0]); i++) {
        process_comm_copy(comm, (Bytes){.data = (const uint8_t *)workers[i].shown,
                                        .size = strlen(workers[i].shown)});
        CHECK_STREQ(comm, workers[i].name);
    }
}

TEST(a_truncated_stat_line_is_refused) {
    char text[] = "42 (sh)" REST;
    ProcessStat stat = {.ppid = 99};

    CHECK_EQ(parse("", &stat), -EBADMSG);
    CHECK_EQ(parse("42 sh S 1", &stat), -EBADMSG);
    CHECK_EQ(parse("42 )sh( S 1", &stat), -EBADMSG);
    for (size_t n = strstr(text, " 987654") - text; n > 0; n--) {
        text[n] = '\0';
        CHECK_EQ(parse(text, &stat), -EBADMSG);
    }
    CHECK_EQ(stat.ppid, 99U);
}

TEST(only_plain_numbers_are_accepted_as_pids) {
    uint32_t id = 5;

    CHECK(process_id_parse("4194304", &id));
    CHECK_EQ(id, 4194304U);
    CHECK(process_id_parse("2147483647", &id));
    CHECK(!process_id_parse("2147483648", &id));
    CHECK(!process_id_parse("99999999999999999999999", &id));
    CHECK(!process_id_parse("0", &id));
    CHECK(!process_id_parse("012", &id));
    CHECK(!process_id_parse("", &id));
    CHECK(!process_id_parse("self", &id));
    CHECK(!process_id_parse("12x", &id));
    CHECK(!process_id_parse(" 1", &id));
    CHECK(!process_id_parse("+1", &id));
    CHECK_EQ(id, 2147483647U);
}

TEST_MAIN()
