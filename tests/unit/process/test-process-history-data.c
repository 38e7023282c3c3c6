/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* Data mappings, with which perf unwinds stacks: who gets them, of which files, and as what. */

static const uint8_t ID_A[] = {0xab, 0xcd};

/* sh (10) is there, the floor is 100, and the recording has stacks to unwind. */
static Fixture with_stacks(void) {
    Fixture f = with_shell();

    history_keep_data(f.history, true);
    emission_set_data(f.emission);
    return f;
}

static void map_library(Fixture *f, uint64_t time) {
    maps_data(f, time, 10, 0x5000, "/lib/a");
    maps(f, time + 1, 10, 0x6000, "/lib/a");
    maps_data(f, time + 2, 10, 0x7000, "/lib/a");
}

TEST(a_recording_with_stacks_has_the_data_mappings_of_programs) {
    _cleanup_(fixture_done) Fixture f = with_stacks();

    map_library(&f, 210);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 10, 10, 250), "200 fork 10/10 of 1/1 anew\n"
                                        "200 comm 10/10 sh\n"
                                        "200 maps 10 1000 /bin/sh\n"
                                        "210 data: maps 10 5000 /lib/a\n"
                                        "211 maps 10 6000 /lib/a\n"
                                        "212 data: maps 10 7000 /lib/a\n");
}

TEST(a_state_includes_data_mappings) {
    _cleanup_(fixture_done) Fixture f = with_stacks();

    map_library(&f, 210);
    for (uint64_t start = 300; start <= 500; start += 100)
        sweep(&f, start);
    CHECK_STREQ(needs(&f, 10, 10, 450), "400 fork 10/10 of 1/1 anew\n"
                                        "400 comm 10/10 sh\n"
                                        "400 maps 10 1000 /bin/sh\n"
                                        "400 data: maps 10 5000 /lib/a\n"
                                        "400 maps 10 6000 /lib/a\n"
                                        "400 data: maps 10 7000 /lib/a\n");
}

TEST(a_recording_without_stacks_has_no_data_mappings) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    history_keep_data(f.history, true);
    (void)needs(&f, 10, 10, 150);
    map_library(&f, 210);
    sweep(&f, 300);
    CHECK_STREQ(said(&f), "211 maps 10 6000 /lib/a\n");
}

TEST(data_mappings_are_dropped_while_no_session_samples_stacks) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    emission_set_data(f.emission);
    (void)needs(&f, 10, 10, 150);
    map_library(&f, 210);
    sweep(&f, 300);
    CHECK_STREQ(said(&f), "211 maps 10 6000 /lib/a\n");
}

TEST(data_mappings_of_other_files_than_programs_are_skipped) {
    _cleanup_(fixture_done) Fixture f = with_stacks();

    (void)needs(&f, 10, 10, 150);
    maps_data(&f, 210, 10, 0x5000, "/var/pack");
    maps_data(&f, 211, 10, 0x6000, "//anon");
    maps_as(&f, PD_MISC_USER | PD_MISC_MMAP_DATA, PROT_READ | PROT_WRITE, 212, 10, 0x7000,
            "/bin/sh");
    sweep(&f, 300);
    CHECK_STREQ(said(&f), "");
    CHECK_EQ(history_counts(f.history).queued, 1U);
}

TEST(a_data_mapping_waits_for_the_build_id_of_its_code_and_gets_it) {
    _cleanup_(fixture_done) Fixture f = with_stacks();
    HistoryWanted wanted;

    history_set_identify(f.history, HISTORY_ASKS);
    (void)needs(&f, 10, 10, 150);
    (void)history_next_wanted(f.history, &wanted);
    map_library(&f, 210);
    sweep(&f, 300);
    (void)said(&f);
    CHECK_EQ(history_next_wanted(f.history, &wanted), 1);
    CHECK_STREQ(wanted.path, "/lib/a");
    history_set_build_id(f.history, wanted.image, (Bytes){.data = ID_A, .size = sizeof(ID_A)}, 1);
    CHECK_EQ(history_next_wanted(f.history, &wanted), 0);
    sweep(&f, 400);
    CHECK_STREQ(said(&f), "210 data: maps 10 5000 /lib/a id abcd\n"
                          "211 maps 10 6000 /lib/a id abcd\n"
                          "212 data: maps 10 7000 /lib/a id abcd\n");
}

TEST(data_mappings_take_at_most_half_of_the_memory) {
    _cleanup_(fixture_done) Fixture f = fixture_with(&(ProcessLimits){.memory_bytes = 1 << 20});
    char path[64];

    history_keep_data(f.history, true);
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(path, sizeof(path), "/data/%u", i);
        maps_data(&f, 100 + i, 10, 0x1000 * (uint64_t)i, path);
    }
    CHECK(history_counts(f.history).memory_bytes < (1 << 19) + (1 << 17));
    CHECK_EQ(history_counts(f.history).dropped, 0U);
}

/* As of 100, from where on no samples have passed. */
TEST(the_floor_stays_while_processes_are_read_again) {
    _cleanup_(fixture_done) Fixture f = with_stacks();

    history_hold_floor(f.history, 1000);
    for (uint64_t start = 300; start <= 500; start += 100)
        sweep(&f, start);
    CHECK_EQ(history_floor(f.history), 100U);
    history_hold_floor(f.history, 0);
    sweep(&f, 600);
    CHECK_EQ(history_floor(f.history), 500U);
    history_hold_floor(f.history, 650);
    sweep(&f, 700);
    CHECK_EQ(history_floor(f.history), 600U);
}

TEST_MAIN()
