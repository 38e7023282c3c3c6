/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* What a process had mapped when it was sampled, which is what its stack is unwound with. */

/* The names of what is mapped, in order of address; "?": nothing is known. Good for one call. */
static const char *mapped(Fixture *f, uint32_t pid, uint64_t time) {
    static Buffer names;
    const ProcessMaps *maps = history_maps(f->history, pid, time);
    const ProcessMapping *m;
    size_t at = 0;

    buffer_clear(&names);
    if (!maps)
        return "?";
    while ((m = maps_next(maps, &at)))
        text_printf(&names, "%s%s", names.size > 0 ? " " : "", m->image->path->text);
    text_putc(&names, '\0');
    return (const char *)names.data;
}

TEST(a_sample_finds_the_mapping_of_its_time) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    maps(&f, 250, 10, 0x5000, "/lib/x.so");
    maps(&f, 270, 10, 0x1000, "/bin/other");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(mapped(&f, 10, 249), "/bin/sh");
    CHECK_STREQ(mapped(&f, 10, 250), "/bin/sh /lib/x.so");
    CHECK_STREQ(mapped(&f, 10, 269), "/bin/sh /lib/x.so");
    CHECK_STREQ(mapped(&f, 10, 290), "/bin/other /lib/x.so");
    /* Samples come CPU by CPU, so that an older one may follow. */
    CHECK_STREQ(mapped(&f, 10, 249), "/bin/sh");
}

TEST(a_child_has_the_mappings_of_its_parent_at_the_fork) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 220, 20, 20, 10, 10);
    maps(&f, 230, 10, 0x5000, "/lib/late.so");
    maps(&f, 240, 20, 0x6000, "/lib/child.so");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(mapped(&f, 20, 225), "/bin/sh");
    CHECK_STREQ(mapped(&f, 20, 245), "/bin/sh /lib/child.so");
    CHECK_STREQ(mapped(&f, 10, 245), "/bin/sh /lib/late.so");
}

TEST(an_exec_removes_all_mappings_of_the_previous_program) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 250, 10, 10, "new", true);
    maps(&f, 251, 10, 0x9000, "/bin/new");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(mapped(&f, 10, 240), "/bin/sh");
    CHECK_STREQ(mapped(&f, 10, 260), "/bin/new");
}

TEST(a_reused_pid_is_another_process) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    exits(&f, 220, 10, 10);
    forks(&f, 240, 10, 10, 1, 1);
    named(&f, 242, 10, 10, "second", true);
    maps(&f, 245, 10, 0x9000, "/bin/second");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(mapped(&f, 10, 210), "/bin/sh");
    CHECK_STREQ(mapped(&f, 10, 250), "/bin/second");
}

TEST(an_unknown_process_has_no_known_mappings) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK(!history_maps(f.history, 99, 150));
}

TEST(a_process_without_a_baseline_has_no_known_mappings_although_it_maps_something) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    maps(&f, 210, 30, 0x5000, "/lib/x.so");
    maps(&f, 210, 40, 0x5000, "/lib/x.so");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(mapped(&f, 30, 250), "?");
    history_complete(f.history, 300);
    sweep(&f, 400);
    CHECK_STREQ(mapped(&f, 30, 350), "?");
    CHECK_EQ(install(&f, 30, 310, 320, "late", 0x1000, "/bin/late"), 0);
    CHECK_STREQ(mapped(&f, 30, 350), "/bin/late");
    /* All of it is known after an exec. */
    named(&f, 450, 40, 40, "new", true);
    maps(&f, 460, 40, 0x9000, "/bin/new");
    (void)history_settle(f.history, 500);
    CHECK_STREQ(mapped(&f, 40, 470), "/bin/new");
}

enum { LOADS = 1000 };

/* The process maps one of two files from time 300 to 2298, at two addresses in turn. */
static void loads_all_the_time(Fixture *f, uint32_t pid) {
    for (uint64_t i = 0; i < LOADS; i++)
        maps(f, 300 + i * 2, pid, 0x5000 + i % 2 * 0x1000, i % 3 == 0 ? "/lib/x.so" : "/lib/yy.so");
}

/* How many versions of maps are made while each of the processes is sampled after each mapping. */
static uint64_t versions_made(Fixture *f, uint32_t first_pid, uint32_t step, uint32_t n) {
    uint64_t before = maps_version(history_maps(f->history, first_pid, 300));

    for (uint64_t i = 1; i < LOADS; i++)
        for (uint32_t p = 0; p < n; p++)
            if (!history_maps(f->history, first_pid + p * step, 300 + i * 2))
                abort();
    return maps_version(history_maps(f->history, first_pid, 298 + LOADS * 2)) - before;
}

TEST(a_later_sample_costs_only_what_was_mapped_in_between) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint64_t versions;

    loads_all_the_time(&f, 10);
    (void)history_settle(f.history, 3000);
    versions = versions_made(&f, 10, 0, 1);
    CHECK(versions >= LOADS - 1);
    CHECK(versions <= 3 * (LOADS - 1));
    CHECK_STREQ(mapped(&f, 10, 2298), "/bin/sh /lib/yy.so /lib/x.so");
    CHECK_STREQ(mapped(&f, 10, 301), "/bin/sh /lib/x.so");
    CHECK_STREQ(mapped(&f, 10, 306), "/bin/sh /lib/yy.so /lib/x.so");
}

TEST(samples_of_processes_in_turn_cost_no_more_than_those_of_each_alone) {
    enum { PROCESSES = 100, STEP = 64 };
    _cleanup_(fixture_done) Fixture f = with_shell();

    for (uint32_t i = 1; i < PROCESSES; i++)
        CHECK_EQ(install(&f, 10 + i * STEP, 110, 120, "other", 0x1000, "/bin/other"), 0);
    for (uint32_t i = 0; i < PROCESSES; i++)
        loads_all_the_time(&f, 10 + i * STEP);
    (void)history_settle(f.history, 3000);
    CHECK(versions_made(&f, 10, STEP, 2) <= 2 * 3 * LOADS);
    CHECK(versions_made(&f, 10, STEP, PROCESSES) <= PROCESSES * 3 * LOADS);
    CHECK_STREQ(mapped(&f, 74, 2298), "/bin/other /lib/yy.so /lib/x.so");
    CHECK_EQ(history_counts(f.history).dropped, 0);
}

/* The answers for thousands of processes are not all kept, and what is evicted is looked up anew.
 */
TEST(kept_answers_take_bounded_memory) {
    enum { PROCESSES = 4000, KEPT_MAX = 1024, ANSWER_MAX = 4096 };
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint64_t before;

    for (uint32_t i = 0; i < PROCESSES; i++) {
        CHECK_EQ(install(&f, 100 + i, 110, 120, "many", 0x1000, "/bin/many"), 0);
        maps(&f, 300, 100 + i, 0x5000, "/lib/x.so");
    }
    (void)history_settle(f.history, 400);
    before = history_counts(f.history).memory_bytes;
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (!history_maps(f.history, 100 + i, 350))
            abort();
    CHECK(history_counts(f.history).memory_bytes - before <= KEPT_MAX * ANSWER_MAX);
    CHECK_STREQ(mapped(&f, 100, 350), "/bin/many /lib/x.so");
    CHECK_STREQ(mapped(&f, 100 + PROCESSES - 1, 350), "/bin/many /lib/x.so");
    (void)history_settle(f.history, 500);
    CHECK(history_counts(f.history).memory_bytes <= before);
}

TEST(a_lookup_is_invalid_after_a_change) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_STREQ(mapped(&f, 10, 150), "/bin/sh");
    maps(&f, 210, 10, 0x5000, "/lib/x.so");
    sweep(&f, 300);
    CHECK_STREQ(mapped(&f, 10, 220), "/bin/sh /lib/x.so");
    sweep(&f, 400);
    sweep(&f, 500);
    CHECK_STREQ(mapped(&f, 10, 450), "/bin/sh /lib/x.so");
}

TEST(the_version_of_maps_changes_exactly_when_they_change) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint64_t before = maps_version(history_maps(f.history, 10, 150)), after;

    sweep(&f, 300);
    CHECK_EQ(maps_version(history_maps(f.history, 10, 250)), before);
    maps(&f, 310, 10, 0x5000, "/lib/x.so");
    sweep(&f, 400);
    after = maps_version(history_maps(f.history, 10, 350));
    CHECK(after != before);
    CHECK_EQ(maps_version(history_maps(f.history, 10, 305)), before);
}

TEST_MAIN()
