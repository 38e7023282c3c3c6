/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* The side-band that a recording gets for its samples, and how long the history keeps it. */

TEST(an_existing_process_is_written_once_with_the_time_of_the_floor) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_EQ(history_floor(f.history), 100);
    CHECK_STREQ(needs(&f, 10, 10, 150), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 sh\n"
                                        "100 maps 10 1000 /bin/sh\n");
    CHECK_STREQ(needs(&f, 10, 10, 151), "");
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 10, 10, 250), "");
}

TEST(an_existing_thread_is_written_when_it_is_sampled) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    (void)needs(&f, 10, 10, 150);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 10, 11, 250), "200 fork 10/11 of 10/10 anew\n"
                                        "200 comm 10/11 helper\n");
    CHECK_STREQ(needs(&f, 10, 11, 251), "");
}

TEST(nothing_is_written_for_idle_and_exiting_tasks) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_STREQ(needs(&f, 0, 0, 150), "");
    CHECK_STREQ(needs(&f, UINT32_MAX, UINT32_MAX, 150), "");
    CHECK_STREQ(needs(&f, 10, UINT32_MAX, 150), "");
    CHECK_EQ(history_counts(f.history).processes, 1);
}

TEST(records_after_the_floor_follow_the_state) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 10, 10, "busy", false);
    maps(&f, 205, 10, 0x5000, "/lib/x.so");
    sweep(&f, 300);
    CHECK_EQ(history_floor(f.history), 200);
    CHECK_STREQ(needs(&f, 10, 10, 250), "200 fork 10/10 of 1/1 anew\n"
                                        "200 comm 10/10 sh\n"
                                        "200 maps 10 1000 /bin/sh\n"
                                        "205 maps 10 5000 /lib/x.so\n"
                                        "210 comm 10/10 busy\n");
    named(&f, 310, 10, 10, "idle", false);
    (void)history_settle(f.history, 400);
    CHECK_STREQ(said(&f), "310 comm 10/10 idle\n");
}

TEST(records_older_than_the_floor_are_folded) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 10, 10, "busy", false);
    maps(&f, 205, 10, 0x1000, "/lib/x.so");
    exits(&f, 220, 10, 11);
    sweep(&f, 300);
    CHECK_EQ(history_counts(f.history).queued, 3);
    sweep(&f, 400);
    sweep(&f, 500);
    CHECK_EQ(history_counts(f.history).queued, 0);
    CHECK_STREQ(needs(&f, 10, 10, 450), "400 fork 10/10 of 1/1 anew\n"
                                        "400 comm 10/10 busy\n"
                                        "400 maps 10 1000 /lib/x.so\n");
}

TEST(a_child_is_written_at_the_time_of_its_fork_with_its_inherited_state) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 10, 10, "parent", false);
    forks(&f, 220, 20, 20, 10, 10);
    named(&f, 230, 10, 10, "later", false);
    named(&f, 240, 20, 20, "child", false);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 20, 20, 250), "220 fork 20/20 of 10/10 anew\n"
                                        "220 comm 20/20 parent\n"
                                        "220 maps 20 1000 /bin/sh\n"
                                        "240 comm 20/20 child\n");
}

TEST(a_child_of_an_emitted_parent_is_the_real_fork) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 220, 20, 20, 10, 11);
    sweep(&f, 300);
    (void)needs(&f, 10, 10, 250);
    /* perf copies the name of the thread that forked, so that thread has to be written. */
    CHECK_STREQ(needs(&f, 20, 20, 251), "200 fork 10/11 of 10/10 anew\n"
                                        "200 comm 10/11 helper\n"
                                        "220 fork 20/20 of 10/11\n");
}

TEST(state_is_inherited_over_several_generations) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    forks(&f, 210, 20, 20, 10, 11);
    maps(&f, 215, 20, 0x7000, "/lib/y.so");
    forks(&f, 220, 20, 21, 20, 20);
    named(&f, 225, 20, 20, "renamed", false);
    forks(&f, 230, 30, 30, 20, 21);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 30, 30, 250), "230 fork 30/30 of 20/20 anew\n"
                                        "230 comm 30/30 helper\n"
                                        "230 maps 30 1000 /bin/sh\n"
                                        "230 maps 30 7000 /lib/y.so\n");
}

TEST(exec_drops_mappings_and_threads) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 10, 10, "ls", true);
    maps(&f, 211, 10, 0x2000, "/bin/ls");
    forks(&f, 220, 20, 20, 10, 10);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 20, 20, 250), "220 fork 20/20 of 10/10 anew\n"
                                        "220 comm 20/20 ls\n"
                                        "220 maps 20 2000 /bin/ls\n");
    sweep(&f, 400);
    CHECK_EQ(history_counts(f.history).threads, 2);
    CHECK_STREQ(needs(&f, 10, 10, 350), "300 fork 10/10 of 1/1 anew\n"
                                        "300 comm 10/10 ls\n"
                                        "300 maps 10 1000 /bin/sh\n"
                                        "300 maps 10 2000 /bin/ls\n");
    /* While the kernel loads the new program, samples have addresses of the old one. */
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    emission_free(f.emission);
    CHECK_OK(emission(&f, &f.emission));
    CHECK_STREQ(needs(&f, 10, 10, 4 * SECOND), "3000000000 fork 10/10 of 1/1 anew\n"
                                               "3000000000 comm 10/10 ls\n"
                                               "3000000000 maps 10 2000 /bin/ls\n");
}

TEST(two_processes_with_one_pid_are_distinguished_by_time) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    exits(&f, 210, 10, 11);
    exits(&f, 211, 10, 10);
    forks(&f, 220, 5, 5, 1, 1);
    forks(&f, 230, 10, 10, 5, 5);
    named(&f, 240, 10, 10, "second", true);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 10, 10, 250), "230 fork 10/10 of 5/5 anew\n"
                                        "240 comm 10/10 second exec\n");
    CHECK_STREQ(needs(&f, 10, 10, 205), "200 fork 10/10 of 1/1 anew\n"
                                        "200 comm 10/10 sh\n"
                                        "200 maps 10 1000 /bin/sh\n");
    CHECK_STREQ(needs(&f, 10, 10, 251), "");
}

TEST(a_process_is_forgotten_two_seconds_after_its_last_thread) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    exits(&f, 210, 10, 10);
    sweep(&f, 300);
    sweep(&f, 400);
    /* The leader has ended, its thread goes on. */
    CHECK_EQ(history_counts(f.history).processes, 1);
    CHECK_STREQ(needs(&f, 10, 11, 350), "300 fork 10/10 of 1/1 anew\n"
                                        "300 comm 10/10 sh\n"
                                        "300 maps 10 1000 /bin/sh\n"
                                        "300 fork 10/11 of 10/10 anew\n"
                                        "300 comm 10/11 helper\n");
    exits(&f, 410, 10, 11);
    sweep(&f, SECOND);
    sweep(&f, 2 * SECOND);
    sweep(&f, 2 * SECOND + 500);
    CHECK_EQ(history_counts(f.history).processes, 1);
    sweep(&f, 2 * SECOND + 600);
    CHECK_EQ(history_counts(f.history).processes, 0);
    CHECK_EQ(history_counts(f.history).threads, 0);
}

TEST(an_ended_process_is_kept_while_samples_need_it) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    exits(&f, 210, 10, 10);
    exits(&f, 210, 10, 11);
    sweep(&f, 300);
    for (uint64_t s = 1; s < 10; s++) {
        sweep(&f, s * SECOND);
        CHECK_OK(emission_need(f.emission, 10, 10, s * SECOND - 1, 0));
        CHECK_EQ(history_counts(f.history).processes, 1);
    }
    sweep(&f, 12 * SECOND);
    sweep(&f, 13 * SECOND);
    CHECK_EQ(history_counts(f.history).processes, 0);
}

TEST(a_process_known_only_from_samples_is_forgotten_with_them) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_STREQ(needs(&f, 40, 40, 150), "");
    CHECK_EQ(history_counts(f.history).unknown, 1);
    sweep(&f, 3 * SECOND);
    sweep(&f, 4 * SECOND);
    CHECK_EQ(history_counts(f.history).unknown, 0);
    CHECK_EQ(history_counts(f.history).processes, 1);
}

TEST(new_threads_are_written_with_the_name_of_their_creator) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    (void)needs(&f, 10, 10, 150);
    forks(&f, 210, 10, 12, 10, 11);
    (void)history_settle(f.history, 300);
    CHECK_STREQ(said(&f), "100 fork 10/11 of 10/10 anew\n"
                          "100 comm 10/11 helper\n"
                          "210 fork 10/12 of 10/11\n");
    history_complete(f.history, 300);
    sweep(&f, 400);
    sweep(&f, 500);
    CHECK_STREQ(needs(&f, 10, 12, 450), "");
}

TEST(records_are_sorted_over_all_rings_and_those_after_the_sweep_wait) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    (void)needs(&f, 10, 10, 150);
    named(&f, 230, 10, 10, "third", false);
    named(&f, 310, 10, 10, "beyond", false);
    named(&f, 210, 10, 10, "first", false);
    named(&f, 220, 10, 10, "second", false);
    (void)history_settle(f.history, 300);
    CHECK_STREQ(said(&f), "210 comm 10/10 first\n"
                          "220 comm 10/10 second\n"
                          "230 comm 10/10 third\n");
    (void)history_settle(f.history, 400);
    CHECK_STREQ(said(&f), "310 comm 10/10 beyond\n");
}

TEST(a_fork_is_written_before_records_of_its_child_at_the_same_time) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 20, 20, "child", false);
    forks(&f, 210, 20, 20, 10, 10);
    sweep(&f, 300);
    CHECK_STREQ(needs(&f, 20, 20, 250), "210 fork 20/20 of 10/10 anew\n"
                                        "210 comm 20/20 sh\n"
                                        "210 maps 20 1000 /bin/sh\n"
                                        "210 comm 20/20 child\n");
}

TEST(a_late_record_gets_the_time_of_the_floor_and_changes_no_newer_state) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    named(&f, 210, 10, 10, "new", false);
    sweep(&f, 300);
    sweep(&f, 400);
    (void)needs(&f, 10, 10, 350);
    named(&f, 205, 10, 10, "old", false);
    maps(&f, 206, 10, 0x9000, "/lib/late.so");
    (void)history_settle(f.history, 500);
    CHECK_EQ(history_counts(f.history).late, 2);
    CHECK_STREQ(said(&f), "300 comm 10/10 old\n"
                          "300 maps 10 9000 /lib/late.so\n");
    history_complete(f.history, 500);
    emission_free(f.emission);
    CHECK_OK(emission(&f, &f.emission));
    CHECK_STREQ(needs(&f, 10, 10, 450), "400 fork 10/10 of 1/1 anew\n"
                                        "400 comm 10/10 new\n"
                                        "400 maps 10 1000 /bin/sh\n"
                                        "400 maps 10 9000 /lib/late.so\n");
}

TEST(a_sample_older_than_the_floor_gets_the_state_of_its_own_time) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_STREQ(needs(&f, 10, 10, 95), "95 fork 10/10 of 1/1 anew\n"
                                       "95 comm 10/10 sh\n"
                                       "95 maps 10 1000 /bin/sh\n");
}

TEST(a_build_id_is_requested_once_and_written_from_then_on) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    static const uint8_t id[] = {0xab, 0xcd};
    HistoryWanted wanted;

    CHECK_EQ(history_next_wanted(f.history, &wanted), 1);
    CHECK_STREQ(wanted.path, "/bin/sh");
    CHECK_EQ(wanted.pid, 10);
    CHECK_EQ(wanted.inode, 7);
    CHECK_EQ(history_next_wanted(f.history, &wanted), 0);
    history_set_build_id(f.history, wanted.image, (Bytes){.data = id, .size = sizeof(id)}, 1);
    history_set_build_id(f.history, wanted.image + 1, (Bytes){.data = id, .size = sizeof(id)}, 1);
    CHECK_STREQ(needs(&f, 10, 10, 150), "100 fork 10/10 of 1/1 anew\n"
                                        "100 comm 10/10 sh\n"
                                        "100 maps 10 1000 /bin/sh id abcd\n");
    maps(&f, 210, 10, 0xa000, "/lib/z.so");
    maps(&f, 211, 10, 0xb000, "//anon");
    (void)history_settle(f.history, 300);
    CHECK_STREQ(said(&f), "210 maps 10 a000 /lib/z.so\n"
                          "211 maps 10 b000 //anon\n");
    CHECK_EQ(history_next_wanted(f.history, &wanted), 1);
    CHECK_STREQ(wanted.path, "/lib/z.so");
    history_set_build_id(f.history, wanted.image, (Bytes){.data = id, .size = sizeof(id)}, 1);
    maps(&f, 310, 10, 0xc000, "/lib/z.so");
    (void)history_settle(f.history, 400);
    CHECK_STREQ(said(&f), "310 maps 10 c000 /lib/z.so id abcd\n");
    CHECK_EQ(history_next_wanted(f.history, &wanted), 0);
}

TEST(the_flag_for_a_build_id_is_removed_from_a_mapping_without_one) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    PdRecord record;

    (void)needs(&f, 10, 10, 150);
    maps_with(&f, PD_MISC_USER | PD_MISC_MMAP_BUILD_ID, 210, 10, 0xa000, "/lib/z.so");
    CHECK_OK(history_settle(f.history, 300));
    record = pd_record_at(emission_pending(f.emission)->data, false);
    CHECK_EQ(record.misc, PD_MISC_USER);
}

static void ksymbol(Fixture *f, uint64_t time, uint64_t addr, bool gone, const char *name) {
    Make m = {};

    u64(&m, addr);
    u32(&m, 0x100);
    u16(&m, 1);
    u16(&m, gone);
    text(&m, name, 16);
    (void)feed(f, &m, PD_RECORD_KSYMBOL, 0, time);
}

TEST(a_recording_begins_with_the_kernel_mappings_and_gets_their_changes) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(buffer_done) Buffer kernel = {}, out = {};
    PdMmap text = {.pid = UINT32_MAX, .start = 0xf000, .length = 0x1000};

    text.filename = (Bytes){.data = (const uint8_t *)"[k]", .size = 3};
    pd_emit_mmap(&kernel, NULL, PD_MISC_KERNEL, &text);
    CHECK_OK(history_install_kernel(f.history, buffer_bytes(&kernel)));
    ksymbol(&f, 210, 0xe000, false, "bpf_a");
    ksymbol(&f, 211, 0xe100, false, "bpf_b");
    sweep(&f, 300);
    sweep(&f, 400);
    ksymbol(&f, 410, 0xe000, true, "bpf_a");
    sweep(&f, 500);
    CHECK_OK(emission_preamble(f.emission, &out));
    CHECK_STREQ(as_text(&f, &out), "1 maps 4294967295 f000 [k]\n"
                                   "1 ksymbol bpf_a\n"
                                   "1 ksymbol bpf_b\n"
                                   "410 ksymbol bpf_a gone\n");
    ksymbol(&f, 510, 0xe200, false, "bpf_c");
    sweep(&f, 600);
    CHECK_STREQ(said(&f), "510 ksymbol bpf_c\n");
    text.start = 0x10000;
    pd_emit_mmap(&kernel, NULL, PD_MISC_KERNEL, &text);
    CHECK_OK(history_install_kernel(f.history, buffer_bytes(&kernel)));
    CHECK_STREQ(said(&f), "500 maps 4294967295 10000 [k]\n");
    sweep(&f, 700);
    emission_free(f.emission);
    CHECK_OK(emission(&f, &f.emission));
    CHECK_OK(emission_preamble(f.emission, &out));
    CHECK_STREQ(as_text(&f, &out), "1 maps 4294967295 f000 [k]\n"
                                   "1 ksymbol bpf_b\n"
                                   "1 maps 4294967295 10000 [k]\n"
                                   "1 ksymbol bpf_c\n");
}

TEST(a_cgroup_is_written_when_a_sample_names_it) {
    _cleanup_(fixture_done) Fixture f = with_shell();

    CHECK_OK(history_install_cgroup(f.history, 9,
                                    (Bytes){.data = (const uint8_t *)"/user.slice", .size = 11}));
    CHECK_OK(emission_need(f.emission, 0, 0, 150, 9));
    CHECK_OK(emission_need(f.emission, 0, 0, 151, 8));
    CHECK_OK(emission_need(f.emission, 0, 0, 152, 9));
    CHECK_STREQ(said(&f), "100 cgroup 9 /user.slice\n");
}

TEST(each_recording_has_only_the_processes_that_it_sampled) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    _cleanup_(emission_freep) Emission *other = NULL;

    CHECK_OK(emission(&f, &other));
    (void)needs(&f, 10, 11, 150);
    named(&f, 210, 10, 10, "busy", false);
    (void)history_settle(f.history, 300);
    CHECK_STREQ(said(&f), "210 comm 10/10 busy\n");
    CHECK_STREQ(as_text(&f, emission_pending(other)), "");
    CHECK_OK(emission_need(other, 10, 11, 250, 0));
    CHECK_STREQ(as_text(&f, emission_pending(other)), "100 fork 10/10 of 1/1 anew\n"
                                                      "100 comm 10/10 sh\n"
                                                      "100 maps 10 1000 /bin/sh\n"
                                                      "210 comm 10/10 busy\n"
                                                      "100 fork 10/11 of 10/10 anew\n"
                                                      "100 comm 10/11 helper\n");
}

/* As many sessions as MaxSessions= allows may rotate while as many others still end. */
TEST(a_hundred_recordings_at_once_hold_what_each_has_written) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    Emission *others[127] = {}, *more = NULL;

    for (size_t i = 0; i < 127; i++)
        CHECK_OK(emission(&f, &others[i]));
    CHECK_EQ(emission(&f, &more), -E2BIG);
    CHECK_OK(emission_need(others[126], 10, 11, 150, 0));
    CHECK(emission_pending(others[126])->size > 0);
    buffer_clear(emission_pending(others[126]));
    /* Neither of two whose bits are 64 apart takes what the other wrote for its own. */
    CHECK_OK(emission_need(others[62], 10, 11, 151, 0));
    CHECK_STREQ(as_text(&f, emission_pending(others[62])), "100 fork 10/10 of 1/1 anew\n"
                                                           "100 comm 10/10 sh\n"
                                                           "100 maps 10 1000 /bin/sh\n"
                                                           "100 fork 10/11 of 10/10 anew\n"
                                                           "100 comm 10/11 helper\n");
    CHECK_OK(emission_need(others[126], 10, 11, 152, 0));
    CHECK_EQ(emission_pending(others[126])->size, 0);
    for (size_t i = 0; i < 127; i++)
        emission_free(others[i]);
    CHECK_OK(emission(&f, &more));
    emission_free(more);
}

TEST(memory_is_bounded_and_freed_again) {
    ProcessLimits limits = {.memory_bytes = 1 << 20};
    _cleanup_(fixture_done) Fixture f = fixture_with(&limits);
    uint64_t before;

    sweep(&f, 1);
    sweep(&f, 2);
    before = history_counts(f.history).memory_bytes;
    for (uint32_t i = 0; i < 100000; i++) {
        forks(&f, 10 + i, 100 + i, 100 + i, 1, 1);
        if (i % 1000 == 0)
            (void)history_settle(f.history, 10 + i);
    }
    CHECK(history_counts(f.history).memory_bytes < (1 << 20) + sizeof(History *) * 65536);
    CHECK(history_counts(f.history).dropped > 0);
    sweep(&f, 200000);
    for (uint32_t i = 0; i < 100000; i++) {
        exits(&f, 300000 + i, 100 + i, 100 + i);
        if (i % 1000 == 0)
            sweep(&f, 300000 + i);
    }
    sweep(&f, 4 * SECOND);
    sweep(&f, 5 * SECOND);
    CHECK(history_counts(f.history).processes <= 1);
    CHECK(history_counts(f.history).memory_bytes < before + 200000);
}

TEST(a_record_shorter_than_its_content_is_refused) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    Make m = {};

    u32(&m, 10);
    CHECK_EQ(feed(&f, &m, PD_RECORD_FORK, 0, 210), -EBADMSG);
}

TEST(the_parent_of_a_living_process_is_known) {
    _cleanup_(fixture_done) Fixture f = with_shell();
    uint32_t ppid = 0;

    forks(&f, 220, 20, 20, 10, 10);
    sweep(&f, 300);
    CHECK_EQ(history_birth(f.history, 20, &ppid), 220U);
    CHECK_EQ(ppid, 10U);
    /* Long after the record was folded. */
    for (uint64_t at = 400; at < 1000; at += 100)
        sweep(&f, at);
    CHECK_EQ(history_birth(f.history, 20, &ppid), 220U);
    /* The process existed before, according to /proc. */
    CHECK_EQ(history_birth(f.history, 10, &ppid), 0U);
    CHECK_EQ(history_birth(f.history, 30, &ppid), 0U);
    exits(&f, 1010, 20, 20);
    for (uint64_t at = 1100; at < 1500; at += 100)
        sweep(&f, at);
    CHECK_EQ(history_birth(f.history, 20, &ppid), 0U);
}

TEST_MAIN()
