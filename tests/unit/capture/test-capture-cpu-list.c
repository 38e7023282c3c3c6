/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/cpu-list.h"

#include "test.h"

static bool reads_as(const char *text, const unsigned *cpus, size_t n) {
    _cleanup_(cpu_list_done) CpuList list = {};
    CpuList expected = {.cpus = (unsigned *)cpus, .n = n};

    return cpu_list_parse(text, &list) == 0 && cpu_list_equal(&list, &expected);
}

TEST(lists_of_the_kernel_are_parsed) {
    CHECK(reads_as("", NULL, 0));
    CHECK(reads_as("0", (unsigned[]){0}, 1));
    CHECK(reads_as("0-3,8", (unsigned[]){0, 1, 2, 3, 8}, 5));
    CHECK(reads_as("8191", (unsigned[]){8191}, 1));
}

TEST(unsorted_lists_with_duplicates_are_normalised) {
    CHECK(reads_as("8,0-2,1-3,8", (unsigned[]){0, 1, 2, 3, 8}, 5));
}

TEST(invalid_list_is_refused) {
    static const char *const texts[] = {",", "1,", ",1", "1-", "-1", "a", "1 2", "2-1", "1-2-3"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CpuList list = {};

        CHECK_EQ(cpu_list_parse(texts[i], &list), -EINVAL);
        CHECK(!list.cpus);
    }
}

TEST(impossible_cpu_numbers_are_refused) {
    CpuList list = {};

    CHECK_EQ(cpu_list_parse("8192", &list), -ERANGE);
    CHECK_EQ(cpu_list_parse("0-99999999999999999999", &list), -ERANGE);
}

TEST(members_are_found) {
    _cleanup_(cpu_list_done) CpuList list = {};

    CHECK_OK(cpu_list_parse("1,3-4,100", &list));
    for (unsigned cpu = 0; cpu < 200; cpu++)
        CHECK_EQ(cpu_list_has(&list, cpu), cpu == 1 || cpu == 3 || cpu == 4 || cpu == 100);
    CHECK(!cpu_list_has(&(CpuList){}, 0));
}

TEST(the_host_has_cpus_online) {
    _cleanup_(cpu_list_done) CpuList list = {};

    CHECK_OK(cpu_list_read("/sys/devices/system/cpu/online", &list));
    CHECK(list.n >= 1);
    CHECK_EQ(cpu_list_read("/proc/version", &list), -EBADMSG);
}

TEST_MAIN()
