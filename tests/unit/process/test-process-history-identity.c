/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* Mappings of files without a build id: which wait for one, until when, and what is written. Until
 * then a recording has them without one: a recorder that dies leaves no sample without its file. */

static const uint8_t ID_A[] = {0xab, 0xcd};

/* sh (10) is there, recordings wait for build ids, nothing was asked yet. */
static Fixture with_asking_shell(void) {
    Fixture f = fixture();

    history_set_identify(f.history, HISTORY_ASKS);
    sweep(&f, SECOND);
    (void)install(&f, 10, SECOND - 50, SECOND - 45, "sh", 0x1000, "/bin/sh");
    sweep(&f, 2 * SECOND);
    sweep(&f, 3 * SECOND);
    return f;
}

static void answer(Fixture *f, const char *path, bool found) {
    HistoryWanted wanted;

    CHECK_EQ(history_next_wanted(f->history, &wanted), 1);
    CHECK_STREQ(wanted.path, path);
    history_set_build_id(f->history, wanted.image,
                         found ? (Bytes){.data = ID_A, .size = sizeof(ID_A)} : (Bytes){}, 1);
}

TEST(a_mapping_is_written_at_once_and_again_with_its_build_id_and_its_time) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    answer(&f, "/bin/sh", true);
    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    maps(&f, 3 * SECOND + 5, 10, 0x5000, "/opt/new");
    sweep(&f, 4 * SECOND);
    CHECK_STREQ(said(&f), "3000000005 maps 10 5000 /opt/new[no-build-id]\n");
    CHECK(emission_waits(f.emission));
    CHECK_EQ(history_waits_until(f.history), 7 * SECOND);
    CHECK_EQ(history_waits_since(f.history), 4 * SECOND);
    answer(&f, "/opt/new", true);
    CHECK_EQ(history_waits_until(f.history), 0U);
    sweep(&f, 4 * SECOND + 10);
    CHECK_STREQ(said(&f), "3000000005 maps 10 5000 /opt/new id abcd\n");
    CHECK(!emission_waits(f.emission));
    CHECK_EQ(history_waits_since(f.history), UINT64_MAX);
}

TEST(the_state_of_a_process_is_written_at_once_too) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    CHECK_STREQ(needs(&f, 10, 10, 2 * SECOND + 1),
                "2000000000 fork 10/10 of 1/1 anew\n"
                "2000000000 comm 10/10 sh\n"
                "2000000000 maps 10 1000 /bin/sh[no-build-id]\n");
    answer(&f, "/bin/sh", true);
    sweep(&f, 3 * SECOND + 1);
    CHECK_STREQ(said(&f), "2000000000 maps 10 1000 /bin/sh id abcd\n");
}

TEST(a_sample_older_than_the_floor_gets_the_mapping_of_its_time) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    (void)needs(&f, 10, 10, 2 * SECOND - 7);
    answer(&f, "/bin/sh", true);
    sweep(&f, 3 * SECOND + 1);
    CHECK_STREQ(said(&f), "1999999993 maps 10 1000 /bin/sh id abcd\n");
}

TEST(the_floor_waits_only_as_long_as_mappings_wait) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    for (uint64_t at = 1; at <= 5; at++)
        sweep(&f, 3 * SECOND + at * SECOND / 10);
    CHECK_EQ(history_floor(f.history), 2 * SECOND);
    sweep(&f, 6 * SECOND);
    CHECK_STREQ(said(&f), "");
    CHECK_EQ(history_waits_until(f.history), 0U);
    sweep(&f, 7 * SECOND);
    CHECK_EQ(history_floor(f.history), 6 * SECOND);
}

TEST(a_build_id_that_comes_after_the_wait_is_written_late) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    sweep(&f, 6 * SECOND);
    sweep(&f, 7 * SECOND);
    (void)said(&f);
    answer(&f, "/bin/sh", true);
    sweep(&f, 8 * SECOND);
    CHECK_STREQ(said(&f), "6000000000 maps 10 1000 /bin/sh id abcd\n");
    CHECK_EQ(history_counts(f.history).unidentified, 0U);
}

TEST(an_unidentified_file_is_requested_again_marked_and_counted) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    answer(&f, "/bin/sh", true);
    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    maps(&f, 3 * SECOND + 5, 10, 0x5000, "/opt/bare");
    sweep(&f, 4 * SECOND);
    CHECK_STREQ(said(&f), "3000000005 maps 10 5000 /opt/bare[no-build-id]\n");
    answer(&f, "/opt/bare", false);
    sweep(&f, 4 * SECOND + 1);
    CHECK_STREQ(said(&f), "");
    CHECK_EQ(history_counts(f.history).unidentified, 1U);
    for (uint64_t at = 5; at <= 6; at++) {
        maps(&f, at * SECOND - 1, 10, 0x7000, "/opt/bare");
        sweep(&f, at * SECOND);
        (void)said(&f);
        answer(&f, "/opt/bare", false);
        sweep(&f, at * SECOND + 1);
        CHECK_STREQ(said(&f), "");
    }
    maps(&f, 7 * SECOND - 1, 10, 0x7000, "/opt/bare");
    sweep(&f, 7 * SECOND);
    CHECK_STREQ(said(&f), "6999999999 maps 10 7000 /opt/bare[no-build-id]\n");
    CHECK_EQ(history_counts(f.history).unidentified, 1U);
}

TEST(named_memory_that_is_no_file_is_not_marked) {
    static const char *const names[] = {"//anon", "/dev/zero (deleted)", "/SYSV00000000 (deleted)",
                                        "/memfd:jit (deleted)", "[vdso]"};
    _cleanup_(fixture_done) Fixture f = fixture();

    history_set_identify(f.history, HISTORY_MARKS);
    sweep(&f, 100);
    sweep(&f, 200);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char expected[64];

        maps(&f, 210 + 100 * i, 10, 0x5000, names[i]);
        sweep(&f, 300 + 100 * i);
        if (i == 0)
            (void)needs(&f, 10, 10, 250);
        else {
            snprintf(expected, sizeof(expected), "%zu maps 10 5000 %s\n", 210 + 100 * i, names[i]);
            CHECK_STREQ(said(&f), expected);
        }
    }
}

TEST(a_child_inherits_mappings_for_which_its_parent_waits) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    forks(&f, 3 * SECOND + 5, 20, 20, 10, 10);
    sweep(&f, 4 * SECOND);
    CHECK_STREQ(needs(&f, 20, 20, 3 * SECOND + 7),
                "3000000005 fork 20/20 of 10/10 anew\n"
                "3000000005 comm 20/20 sh\n"
                "3000000005 maps 20 1000 /bin/sh[no-build-id]\n");
    answer(&f, "/bin/sh", true);
    sweep(&f, 4 * SECOND + 1);
    CHECK_STREQ(said(&f), "3000000005 maps 20 1000 /bin/sh id abcd\n");
}

TEST(mappings_from_before_exec_do_not_hide_later_ones) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();

    answer(&f, "/bin/sh", false);
    named(&f, 3 * SECOND + 5, 10, 10, "new", true);
    maps(&f, 3 * SECOND + 6, 10, 0x1000, "//anon");
    sweep(&f, 4 * SECOND);
    sweep(&f, 4 * SECOND + 1);
    sweep(&f, 4 * SECOND + 2);
    CHECK_STREQ(needs(&f, 10, 10, 4 * SECOND + 1), "4000000001 fork 10/10 of 1/1 anew\n"
                                                   "4000000001 comm 10/10 new\n"
                                                   "4000000001 maps 10 1000 /bin/sh[no-build-id]\n"
                                                   "4000000001 maps 10 1000 //anon\n");
    answer(&f, "/bin/sh", true);
    sweep(&f, 4 * SECOND + 3);
    CHECK_STREQ(said(&f), "4000000001 maps 10 1000 /bin/sh id abcd\n"
                          "4000000001 maps 10 1000 //anon\n");
}

TEST(each_recording_waits_for_itself) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();
    _cleanup_(emission_freep) Emission *other = NULL;

    CHECK_OK(emission(&f, &other));
    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    CHECK(!emission_waits(other));
    CHECK_OK(emission_need(other, 10, 10, 2 * SECOND + 1, 0));
    (void)as_text(&f, emission_pending(other));
    f.emission = emission_free(f.emission);
    CHECK(emission_waits(other));
    answer(&f, "/bin/sh", true);
    sweep(&f, 3 * SECOND + 1);
    CHECK(!emission_waits(other));
    CHECK_STREQ(as_text(&f, emission_pending(other)), "2000000000 maps 10 1000 /bin/sh id abcd\n");
}

TEST(a_request_that_was_refused_for_lack_of_space_is_repeated) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();
    HistoryWanted wanted, again;

    CHECK_EQ(history_next_wanted(f.history, &wanted), 1);
    history_put_back_wanted(f.history);
    CHECK_EQ(history_next_wanted(f.history, &again), 1);
    CHECK_EQ(again.image, wanted.image);
    CHECK_EQ(history_next_wanted(f.history, &again), 0);
}

TEST(requests_beyond_the_limit_are_sent_when_others_are_answered) {
    _cleanup_(fixture_done) Fixture f = with_asking_shell();
    HistoryWanted wanted;
    uint64_t first, n = 1;

    CHECK_EQ(history_next_wanted(f.history, &wanted), 1);
    first = wanted.image;
    for (unsigned i = 0; i < 1100; i++) {
        char path[32];

        snprintf(path, sizeof(path), "/opt/%u", i);
        maps(&f, 3 * SECOND + 1 + i, 10, 0x10000 + i * 0x1000, path);
    }
    sweep(&f, 4 * SECOND);
    for (; history_next_wanted(f.history, &wanted) > 0; n++)
        ;
    CHECK_EQ(n, 1024U);
    /* None is forgotten while its answer is to come. */
    for (uint64_t i = 0; i < n; i++)
        history_set_build_id(f.history, first + i, (Bytes){.data = ID_A, .size = sizeof(ID_A)}, 1);
    (void)needs(&f, 10, 10, 3 * SECOND + 1);
    for (n = 0; history_next_wanted(f.history, &wanted) > 0; n++)
        ;
    CHECK_EQ(n, 1101U - 1024U);
}

TEST(a_marked_mapping_of_another_recording_gets_its_build_id) {
    _cleanup_(fixture_done) Fixture f = fixture();
    PdMmap mmap = {.pid = 10,
                   .start = 0x5000,
                   .length = 0x1000,
                   .build_id = ID_A,
                   .build_id_size = sizeof(ID_A),
                   .filename = {(const uint8_t *)"/opt/new", 8}};

    history_set_identify(f.history, HISTORY_MARKS);
    maps(&f, 100, 10, 0x5000, "/opt/new[no-build-id]");
    (void)history_settle(f.history, UINT64_MAX);
    CHECK_STREQ(needs(&f, 10, 10, 150), "100 maps 10 5000 /opt/new[no-build-id]\n");
    mmap.filename = (Bytes){(const uint8_t *)"/opt/old", 8};
    CHECK(!history_learn_build_id(f.history, &mmap, 160));
    mmap.filename = (Bytes){(const uint8_t *)"/opt/new", 8};
    CHECK(history_learn_build_id(f.history, &mmap, 160));
    (void)history_settle(f.history, UINT64_MAX);
    CHECK_STREQ(said(&f), "100 maps 10 5000 /opt/new id abcd\n");
}

TEST(the_vdso_of_64_bit_processes_has_the_given_build_id) {
    _cleanup_(fixture_done) Fixture f = fixture();

    history_set_identify(f.history, HISTORY_ASKS);
    history_set_vdso(f.history, (Bytes){.data = ID_A, .size = sizeof(ID_A)});
    maps(&f, 100, 10, 0x7fff00000000, "[vdso]");
    maps(&f, 100, 10, 0xf7f00000, "[vdso]");
    maps(&f, 100, 10, 0x7fff10000000, "[uprobes]");
    (void)history_settle(f.history, UINT64_MAX);
    CHECK_STREQ(needs(&f, 10, 10, 150), "100 maps 10 7fff00000000 [vdso] id abcd\n"
                                        "100 maps 10 f7f00000 [vdso]\n"
                                        "100 maps 10 7fff10000000 [uprobes]\n");
}

TEST_MAIN()
