/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* State from /proc or from an earlier recording, and how it meets the side-band. */

static void stated(Fixture *f, uint64_t time, uint32_t pid, uint32_t tid, const char *name) {
    Make m = {};

    u32(&m, pid);
    u32(&m, pid == tid ? 1 : pid);
    u32(&m, tid);
    u32(&m, pid == tid ? 1 : pid);
    u64(&m, time);
    (void)feed(f, &m, PD_RECORD_FORK, PD_MISC_FORK_EXEC, time);
    named(f, time, pid, tid, name, false);
}

TEST(an_unknown_process_gets_its_state_when_it_is_read) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint32_t pid = 0;

    CHECK_STREQ(needs(&f, 40, 41, 150), "");
    CHECK_EQ(history_next_unknown(f.history, &pid), 1);
    CHECK_EQ(pid, 40);
    CHECK_EQ(history_next_unknown(f.history, &pid), 0);
    CHECK_EQ(install(&f, 40, 210, 220, "found", 0x4000, "/bin/found"), -EAGAIN);
    sweep(&f, 300);
    CHECK_OK(install(&f, 40, 210, 220, "found", 0x4000, "/bin/found"));
    CHECK_STREQ(said(&f), "200 fork 40/40 of 1/1 anew\n"
                          "200 comm 40/40 found\n"
                          "200 maps 40 4000 /bin/found\n"
                          "200 fork 40/41 of 40/40 anew\n"
                          "200 comm 40/41 helper\n");
    CHECK_EQ(history_counts(f.history).unknown, 0);
    CHECK_STREQ(needs(&f, 40, 41, 250), "");
}

TEST(an_unknown_process_with_a_sample_older_than_the_floor_gets_its_state_at_that_time) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_STREQ(needs(&f, 40, 41, 95), "");
    CHECK_OK(history_settle(f.history, 300));
    CHECK_OK(install(&f, 40, 210, 220, "found", 0x4000, "/bin/found"));
    CHECK_STREQ(said(&f), "95 fork 40/40 of 1/1 anew\n"
                          "95 comm 40/40 found\n"
                          "95 maps 40 4000 /bin/found\n"
                          "95 fork 40/41 of 40/40 anew\n"
                          "95 comm 40/41 helper\n");
}

TEST(a_process_with_side_band_during_its_read_is_read_again) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 215, 40, 40, "moving", false);
    sweep(&f, 300);
    CHECK_EQ(install(&f, 40, 210, 220, "found", 0x4000, "/bin/found"), 1);
    CHECK_OK(install(&f, 40, 230, 240, "found", 0x4000, "/bin/found"));
}

TEST(a_child_of_an_unread_parent_inherits_when_the_parent_is_read) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 210, 50, 50, 40, 40);
    maps(&f, 211, 50, 0x8000, "/lib/own.so");
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 50, 50, 250), "210 fork 50/50 of 40/40 anew\n"
                                        "211 maps 50 8000 /lib/own.so\n");
    CHECK_OK(install(&f, 40, 230, 240, "parent", 0x4000, "/bin/parent"));
    CHECK_STREQ(said(&f), "210 fork 50/50 of 40/40 anew\n"
                          "210 comm 50/50 parent\n"
                          "210 maps 50 4000 /bin/parent\n");
    sweep(&f, 400);
    emission_free(f.emission);
    CHECK_OK(emission(&f, &f.emission));
    sweep(&f, 500);
    CHECK_STREQ(needs(&f, 50, 50, 450), "400 fork 50/50 of 40/40 anew\n"
                                        "400 comm 50/50 parent\n"
                                        "400 maps 50 4000 /bin/parent\n"
                                        "400 maps 50 8000 /lib/own.so\n");
}

TEST(a_child_of_an_unread_parent_is_written_again_when_the_parent_is_read) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 210, 50, 50, 40, 40);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 40, 40, 250), "");
    CHECK_STREQ(needs(&f, 50, 50, 250), "210 fork 50/50 of 40/40 anew\n");
    CHECK_OK(install(&f, 40, 230, 240, "parent", 0x4000, "/bin/parent"));
    CHECK_STREQ(said(&f), "200 fork 40/40 of 1/1 anew\n"
                          "200 comm 40/40 parent\n"
                          "200 maps 40 4000 /bin/parent\n"
                          "200 fork 40/41 of 40/40 anew\n"
                          "200 comm 40/41 helper\n"
                          "210 fork 50/50 of 40/40 anew\n"
                          "210 comm 50/50 parent\n"
                          "210 maps 50 4000 /bin/parent\n");
}

TEST(a_child_that_executes_before_its_parent_is_read_inherits_until_its_exec) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 210, 50, 50, 40, 40);
    named(&f, 220, 50, 50, "ls", true);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 50, 50, 215), "210 fork 50/50 of 40/40 anew\n"
                                        "220 comm 50/50 ls exec\n");
    CHECK_OK(install(&f, 40, 230, 240, "parent", 0x4000, "/bin/parent"));
    CHECK_STREQ(said(&f), "210 fork 50/50 of 40/40 anew\n"
                          "210 comm 50/50 parent\n"
                          "210 maps 50 4000 /bin/parent\n");
    CHECK_EQ(history_counts(f.history).unknown, 0);
}

TEST(a_folded_child_keeps_its_own_mappings_above_those_it_inherits_later) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 210, 50, 50, 40, 40);
    maps(&f, 211, 50, 0x8000, "/lib/own.so");
    sweep(&f, 300);
    sweep(&f, 400);
    CHECK_OK(install(&f, 40, 330, 340, "parent", 0x4000, "/bin/parent"));
    CHECK_STREQ(needs(&f, 50, 50, 350), "300 fork 50/50 of 40/40 anew\n"
                                        "300 comm 50/50 parent\n"
                                        "300 maps 50 4000 /bin/parent\n"
                                        "300 maps 50 8000 /lib/own.so\n");
}

TEST(resync_adds_missing_facts) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    (void)needs(&f, 10, 10, 150);
    sweep(&f, 300);
    CHECK_OK(install(&f, 10, 210, 220, "sh", 0x1000, "/bin/sh"));
    CHECK_STREQ(said(&f), "");
    CHECK_EQ(history_counts(f.history).inferred, 0);
    CHECK_OK(install(&f, 10, 230, 240, "other", 0x6000, "/lib/missed.so"));
    CHECK_STREQ(said(&f), "201 maps 10 6000 /lib/missed.so\n"
                          "201 comm 10/10 other\n");
    CHECK_EQ(history_counts(f.history).inferred, 2);
}

TEST(namespaces_that_are_read_later_are_written_once_with_the_state) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    (void)needs(&f, 10, 10, 150);
    sweep(&f, 300);
    CHECK_OK(install_living_in(&f, 10, 210, 220, "sh", 0x1000, "/bin/sh", 77));
    CHECK_STREQ(said(&f), "201 namespaces 10/10 112 bytes, first 77\n");
    CHECK_OK(install_living_in(&f, 10, 230, 240, "sh", 0x1000, "/bin/sh", 77));
    CHECK_STREQ(said(&f), "");
    sweep(&f, 400);
    sweep(&f, 500);
    CHECK_OK(install_living_in(&f, 10, 410, 420, "sh", 0x1000, "/bin/sh", 77));
    CHECK_STREQ(said(&f), "");
    emission_free(f.emission);
    CHECK_OK(emission(&f, &f.emission));
    CHECK(strstr(needs(&f, 10, 10, 450), "400 namespaces 10/10 112 bytes, first 77\n"));
}

TEST(an_unknown_process_has_its_namespaces_from_the_start) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    sweep(&f, 300);
    CHECK_OK(install_living_in(&f, 40, 210, 220, "found", 0x4000, "/bin/found", 78));
    CHECK(strstr(needs(&f, 40, 40, 250), "200 namespaces 40/40 112 bytes, first 78\n"));
}

TEST(a_process_missing_from_a_resync_counts_as_exited) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 290, 20, 20, 10, 10);
    sweep(&f, 300);
    CHECK_OK(history_sweep_missing(f.history, 250));
    CHECK_EQ(history_counts(f.history).processes, 2);
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    CHECK_EQ(history_counts(f.history).processes, 1);
    CHECK_EQ(history_counts(f.history).threads, 1);
}

TEST(an_earlier_recording_adds_the_state_before_it) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 150, 10, 10, "sh");
    maps(&f, 150, 10, 0x1000, "/bin/sh");
    stated(&f, 170, 10, 11, "helper");
    named(&f, 180, 10, 10, "busy", false);
    forks(&f, 190, 20, 20, 10, 10);
    maps(&f, 195, 20, 0x3000, "/lib/a.so");
    (void)history_resume(f.history, 120);
    /* The ring still holds the end of it. */
    forks(&f, 190, 20, 20, 10, 10);
    maps(&f, 195, 20, 0x3000, "/lib/a.so");
    (void)history_settle(f.history, 200);
    CHECK_EQ(history_counts(f.history).processes, 2);
    CHECK_STREQ(needs(&f, 10, 11, 130), "120 fork 10/10 of 1/1 anew\n"
                                        "120 comm 10/10 sh\n"
                                        "120 maps 10 1000 /bin/sh\n"
                                        "180 comm 10/10 busy\n"
                                        "120 fork 10/11 of 10/10 anew\n"
                                        "120 comm 10/11 helper\n");
    CHECK_STREQ(needs(&f, 20, 20, 192), "190 fork 20/20 of 10/10\n"
                                        "195 maps 20 3000 /lib/a.so\n"
                                        "195 maps 20 3000 /lib/a.so\n");
}

/* As profd writes it: a build id instead of the identity of a file. */
static void maps_recorded(Fixture *f, uint64_t time, uint32_t pid, uint64_t start,
                          const char *name) {
    const uint64_t fields[] = {start, 0x1000, 0};
    Make m = {};

    u32(&m, pid);
    u32(&m, pid);
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        u64(&m, fields[i]);
    u32(&m, 20);
    for (unsigned i = 0; i < 5; i++)
        u32(&m, 0xabababab);
    u32(&m, PROT_READ | PROT_EXEC);
    u32(&m, MAP_PRIVATE);
    text(&m, name, (strlen(name) + 8) / 8 * 8);
    (void)feed(f, &m, PD_RECORD_MMAP2, PD_MISC_USER | PD_MISC_MMAP_BUILD_ID, time);
}

static uint64_t inode_at(Fixture *f, uint32_t pid, uint64_t address, uint64_t time) {
    const ProcessMaps *mapped = history_maps(f->history, pid, time);
    const ProcessMapping *m = mapped ? maps_find(mapped, address) : NULL;

    return m ? m->image->inode : UINT64_MAX;
}

/* Its build id is known, and not which file has its unwind table. */
TEST(proc_says_which_file_a_mapping_of_an_earlier_recording_is) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 90, 10, 10, "sh");
    maps_recorded(&f, 90, 10, 0x1000, "/bin/sh");
    (void)history_resume(f.history, 100);
    CHECK_EQ(inode_at(&f, 10, 0x1000, 110), (uint64_t)0);
    sweep(&f, 200);
    CHECK_OK(install(&f, 10, 150, 160, "sh", 0x1000, "/bin/sh"));
    CHECK_EQ(inode_at(&f, 10, 0x1000, 210), strlen("/bin/sh"));
}

/* A process that two segments have is stated twice, the second time behind the floor. */
TEST(proc_says_so_of_a_mapping_behind_the_floor_too) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 90, 10, 10, "sh");
    maps_recorded(&f, 90, 10, 0x1000, "/bin/sh");
    (void)history_resume(f.history, 100);
    stated(&f, 120, 10, 10, "sh");
    maps_recorded(&f, 120, 10, 0x1000, "/bin/sh");
    (void)history_settle(f.history, 200);
    CHECK_OK(install(&f, 10, 150, 160, "sh", 0x1000, "/bin/sh"));
    CHECK_EQ(inode_at(&f, 10, 0x1000, 170), strlen("/bin/sh"));
    sweep(&f, 300);
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    CHECK_EQ(inode_at(&f, 10, 0x1000, 4 * SECOND), strlen("/bin/sh"));
}

/* The parent, which ended before /proc was read, has no file to inherit. */
TEST(proc_says_so_of_a_child_that_was_born_since_too) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 90, 10, 10, "sh");
    maps_recorded(&f, 90, 10, 0x1000, "/bin/sh");
    (void)history_resume(f.history, 100);
    forks(&f, 120, 20, 20, 10, 10);
    exits(&f, 130, 10, 10);
    (void)history_settle(f.history, 200);
    CHECK_OK(install(&f, 20, 150, 160, "sh", 0x1000, "/bin/sh"));
    CHECK_EQ(inode_at(&f, 20, 0x1000, 170), strlen("/bin/sh"));
    sweep(&f, 300);
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    CHECK_EQ(inode_at(&f, 20, 0x1000, 4 * SECOND), strlen("/bin/sh"));
}

TEST(records_older_than_a_stated_state_are_part_of_it) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 90, 10, 10, "ls");
    maps(&f, 90, 10, 0x1000, "/bin/ls");
    (void)history_resume(f.history, 100);
    forks(&f, 50, 10, 10, 5, 5);
    named(&f, 60, 10, 10, "ls", true);
    maps(&f, 70, 10, 0x1000, "/bin/ls");
    named(&f, 110, 10, 10, "later", false);
    (void)history_settle(f.history, 200);
    CHECK_STREQ(needs(&f, 10, 10, 105), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 ls\n"
                                        "100 maps 10 1000 /bin/ls\n"
                                        "110 comm 10/10 later\n");
}

TEST(repeated_records_of_one_ring_do_not_undo_records_of_others) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 50, 10, 10, "sh");
    forks(&f, 60, 10, 11, 10, 10);
    maps(&f, 65, 10, 0x1000, "/bin/old");
    named(&f, 70, 10, 11, "worker", false);
    maps(&f, 75, 10, 0x1000, "/bin/new");
    (void)history_resume(f.history, 100);
    forks(&f, 60, 10, 11, 10, 10);
    maps(&f, 65, 10, 0x1000, "/bin/old");
    /* This mapping was not reported before. */
    maps(&f, 90, 10, 0x2000, "/lib/late.so");
    (void)history_settle(f.history, 200);
    CHECK_STREQ(needs(&f, 10, 11, 150), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 sh\n"
                                        "100 maps 10 1000 /bin/new\n"
                                        "100 maps 10 2000 /lib/late.so\n"
                                        "100 fork 10/11 of 10/10 anew\n"
                                        "100 comm 10/11 worker\n");
}

TEST(records_older_than_a_recording_follow_its_states) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 90, 10, 10, "sh");
    maps(&f, 90, 10, 0x1000, "/bin/sh");
    named(&f, 90, 10, 10, "ls", true);
    maps(&f, 90, 10, 0x2000, "/bin/ls");
    forks(&f, 90, 10, 11, 10, 10);
    stated(&f, 90, 10, 12, "helper");
    (void)history_resume(f.history, 100);
    CHECK_STREQ(needs(&f, 10, 11, 105), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 ls\n"
                                        "100 maps 10 2000 /bin/ls\n"
                                        "100 fork 10/11 of 10/10 anew\n");
    CHECK_STREQ(needs(&f, 10, 12, 106), "100 fork 10/12 of 10/10 anew\n"
                                        "100 comm 10/12 helper\n");
}

TEST(a_repeated_state_replaces_the_first) {
    _cleanup_(fixture_done) Fixture f = fixture();

    stated(&f, 50, 10, 10, "old");
    maps(&f, 50, 10, 0x1000, "/bin/old");
    stated(&f, 60, 10, 10, "new");
    maps(&f, 60, 10, 0x2000, "/bin/new");
    (void)history_resume(f.history, 100);
    CHECK_STREQ(needs(&f, 10, 10, 150), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 new\n"
                                        "100 maps 10 2000 /bin/new\n");
    (void)history_settle(f.history, 300);
    CHECK_OK(history_sweep_missing(f.history, 250));
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    CHECK_EQ(history_counts(f.history).processes, 0);
}

TEST(a_child_whose_parent_ended_unread_is_read_itself) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint32_t pid = 0;

    forks(&f, 210, 50, 50, 40, 40);
    exits(&f, 220, 40, 40);
    sweep(&f, 300);
    while (history_next_unknown(f.history, &pid) > 0)
        CHECK_EQ(pid, 40);
    CHECK_OK(history_sweep_missing(f.history, 200));
    pid = 0;
    while (history_next_unknown(f.history, &pid) > 0 && pid != 50)
        ;
    CHECK_EQ(pid, 50);
    CHECK_OK(install(&f, 50, 230, 240, "child", 0x4000, "/bin/child"));
    CHECK_STREQ(needs(&f, 50, 50, 250), "210 fork 50/50 of 40/40 anew\n"
                                        "210 comm 50/50 child\n"
                                        "210 maps 50 4000 /bin/child\n");
}

TEST_MAIN()
