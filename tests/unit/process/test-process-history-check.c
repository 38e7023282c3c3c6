/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include "history-fixture.h"

/* Files whose build id is known and that are mapped anew: they may have been overwritten. */

static const uint8_t ID_A[] = {0xab, 0xcd}, ID_B[] = {0xbb, 0xbb};

static HistoryWanted next_wanted(Fixture *f, const char *path, bool checks) {
    HistoryWanted wanted;

    if (history_next_wanted(f->history, &wanted) != 1 || strcmp(wanted.path, path) != 0 ||
        wanted.checks != checks)
        abort();
    return wanted;
}

static void answer(Fixture *f, const char *path, const uint8_t *id, size_t size) {
    HistoryWanted wanted = next_wanted(f, path, false);

    history_set_build_id(f->history, wanted.image, (Bytes){.data = id, .size = size}, id[0]);
}

/* True: the file was changed. */
static bool answer_check(Fixture *f, const char *path, HistoryVerdict verdict,
                         uint64_t changed_ns) {
    HistoryWanted wanted = next_wanted(f, path, true), changed;

    return history_set_checked(f->history, wanted.image, verdict, changed_ns, &changed) &&
           changed.inode == wanted.inode;
}

static void starts(Fixture *f, uint64_t time, uint32_t pid) {
    named(f, time, pid, pid, "app", true);
    maps(f, time, pid, 0x5000, "/opt/app");
}

static bool sees(Fixture *f, uint32_t pid, uint64_t time, const char *line) {
    return strstr(needs(f, pid, pid, time), line) != NULL;
}

/* /opt/app has build id A and runs as 10; the floor is 4 s, and nothing waits. */
static Fixture with_known_app(void) {
    Fixture f = fixture();

    history_set_identify(f.history, HISTORY_ASKS);
    sweep(&f, SECOND);
    (void)install(&f, 10, SECOND - 50, SECOND - 45, "sh", 0x1000, "/bin/sh");
    sweep(&f, 2 * SECOND);
    answer(&f, "/bin/sh", ID_A, sizeof(ID_A));
    sweep(&f, 3 * SECOND);
    (void)needs(&f, 10, 10, 2 * SECOND + 1);
    maps(&f, 3 * SECOND + 5, 10, 0x5000, "/opt/app");
    sweep(&f, 4 * SECOND);
    answer(&f, "/opt/app", ID_A, sizeof(ID_A));
    sweep(&f, 5 * SECOND);
    (void)said(&f);
    return f;
}

/* It was started again in the last sweep, as 20, and as 30, of which there is no sample yet. */
static Fixture with_app_started_again(void) {
    Fixture f = with_known_app();

    for (uint32_t pid = 20; pid <= 30; pid += 10)
        starts(&f, 5 * SECOND + pid, pid);
    (void)history_settle(f.history, 6 * SECOND);
    if (!sees(&f, 20, 5 * SECOND + 21, "\n5000000020 maps 20 5000 /opt/app id abcd\n") ||
        !emission_waits(f.emission) || history_waits_since(f.history) != 6 * SECOND)
        abort();
    history_complete(f.history, 6 * SECOND);
    return f;
}

TEST(a_file_that_is_the_same_keeps_its_build_id) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();

    CHECK(!answer_check(&f, "/opt/app", HISTORY_SAME, 0));
    CHECK(!emission_waits(f.emission));
    CHECK_EQ(history_waits_since(f.history), UINT64_MAX);
    CHECK_EQ(history_waits_until(f.history), 0U);
    CHECK(!history_has_answers(f.history));
    sweep(&f, 7 * SECOND);
    CHECK_STREQ(said(&f), "");
    CHECK(sees(&f, 30, 7 * SECOND, "maps 30 5000 /opt/app id abcd\n"));
}

TEST(an_overwritten_file_has_its_new_build_id_in_new_mappings_alone) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();
    _cleanup_(emission_freep) Emission *next = NULL;

    CHECK(answer_check(&f, "/opt/app", HISTORY_CHANGED, 5 * SECOND + 10));
    CHECK(emission_waits(f.emission));
    answer(&f, "/opt/app", ID_B, sizeof(ID_B));
    CHECK(history_has_answers(f.history));
    sweep(&f, 6 * SECOND + 1);
    CHECK_STREQ(said(&f), "5000000020 maps 20 5000 /opt/app id bbbb\n");
    CHECK(!emission_waits(f.emission));
    sweep(&f, 7 * SECOND);
    sweep(&f, 8 * SECOND);
    CHECK_OK(emission(&f, &next));
    f.emission = emission_free(f.emission);
    f.emission = TAKE_PTR(next);
    CHECK(sees(&f, 10, 8 * SECOND, "maps 10 5000 /opt/app id abcd\n"));
    CHECK(sees(&f, 20, 8 * SECOND, "maps 20 5000 /opt/app id bbbb\n"));
    CHECK(sees(&f, 30, 8 * SECOND, "maps 30 5000 /opt/app id bbbb\n"));
    maps(&f, 8 * SECOND + 1, 20, 0x9000, "/opt/app");
    sweep(&f, 9 * SECOND);
    CHECK_STREQ(said(&f), "8000000001 maps 20 9000 /opt/app id bbbb\n");
    CHECK(!answer_check(&f, "/opt/app", HISTORY_SAME, 0));
}

TEST(what_was_mapped_before_the_change_and_never_checked_has_no_build_id) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();

    CHECK(answer_check(&f, "/opt/app", HISTORY_CHANGED, 5 * SECOND + 25));
    answer(&f, "/opt/app", ID_B, sizeof(ID_B));
    sweep(&f, 6 * SECOND + 1);
    CHECK_STREQ(said(&f), "5000000020 maps 20 5000 /opt/app[no-build-id]\n");
    CHECK(sees(&f, 30, 6 * SECOND, "maps 30 5000 /opt/app id bbbb\n"));
    CHECK_EQ(history_counts(f.history).unidentified, 1U);
}

TEST(a_file_overwritten_by_one_without_a_build_id_has_none) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();

    CHECK(answer_check(&f, "/opt/app", HISTORY_CHANGED, 5 * SECOND));
    answer(&f, "/opt/app", ID_B, 0);
    sweep(&f, 6 * SECOND + 1);
    CHECK_STREQ(said(&f), "5000000020 maps 20 5000 /opt/app[no-build-id]\n");
    CHECK_EQ(history_counts(f.history).unidentified, 1U);
}

TEST(a_file_that_cannot_be_checked_has_no_build_id_until_a_later_check_proves_it) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();

    CHECK(!answer_check(&f, "/opt/app", HISTORY_UNPROVEN, 0));
    /* It is corrected at its own time, and causes no sweep. */
    CHECK(emission_waits(f.emission));
    CHECK(!history_has_answers(f.history));
    CHECK_EQ(history_waits_since(f.history), 6 * SECOND);
    starts(&f, 6 * SECOND + 40, 40);
    sweep(&f, 7 * SECOND);
    CHECK_STREQ(said(&f), "5000000020 maps 20 5000 /opt/app[no-build-id]\n");
    CHECK(!emission_waits(f.emission));
    CHECK_EQ(history_counts(f.history).unidentified, 1U);
    CHECK(!answer_check(&f, "/opt/app", HISTORY_SAME, 0));
    CHECK_EQ(history_counts(f.history).unidentified, 0U);
    sweep(&f, 8 * SECOND);
    CHECK_STREQ(said(&f), "6000000000 maps 20 5000 /opt/app id abcd\n");
    CHECK(sees(&f, 40, 8 * SECOND, "maps 40 5000 /opt/app id abcd\n"));
}

TEST(a_check_covers_only_what_was_mapped_before_it_began) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();
    HistoryWanted running = next_wanted(&f, "/opt/app", true), wanted;

    CHECK_EQ(running.pid, 30);
    starts(&f, 6 * SECOND + 40, 40);
    starts(&f, 6 * SECOND + 50, 50);
    sweep(&f, 7 * SECOND);
    CHECK_EQ(history_next_wanted(f.history, &wanted), 0);
    /* The floor waits for the first check. */
    CHECK_EQ(history_floor(f.history), 5 * SECOND + 19);
    CHECK(!history_set_checked(f.history, running.image, HISTORY_SAME, 0, &wanted));
    sweep(&f, 8 * SECOND);
    CHECK_EQ(history_floor(f.history), 6 * SECOND + 39);
    CHECK(answer_check(&f, "/opt/app", HISTORY_CHANGED, 6 * SECOND));
    answer(&f, "/opt/app", ID_B, sizeof(ID_B));
    sweep(&f, 9 * SECOND);
    CHECK_STREQ(said(&f), "");
    CHECK(sees(&f, 30, 9 * SECOND, "maps 30 5000 /opt/app id abcd\n"));
    CHECK(sees(&f, 40, 9 * SECOND, "maps 40 5000 /opt/app id bbbb\n"));
}

TEST(a_check_without_an_answer_holds_the_floor_for_three_seconds) {
    _cleanup_(fixture_done) Fixture f = with_app_started_again();
    HistoryWanted running = next_wanted(&f, "/opt/app", true);

    sweep(&f, 8 * SECOND);
    CHECK_EQ(history_floor(f.history), 5 * SECOND + 19);
    CHECK_STREQ(said(&f), "");
    sweep(&f, 9 * SECOND);
    CHECK_STREQ(said(&f), "5000000020 maps 20 5000 /opt/app[no-build-id]\n");
    CHECK_EQ(history_floor(f.history), 8 * SECOND);
    CHECK(!emission_waits(f.emission));
    /* It is a proof all the same. */
    CHECK(!history_set_checked(f.history, running.image, HISTORY_SAME, 0, &running));
    sweep(&f, 10 * SECOND);
    CHECK_STREQ(said(&f), "8000000000 maps 20 5000 /opt/app id abcd\n");
}

TEST(known_files_that_are_mapped_in_each_sweep_do_not_hold_the_floor) {
    _cleanup_(fixture_done) Fixture f = with_known_app();
    HistoryWanted wanted;

    for (uint64_t at = 5; at < 40; at++) {
        for (uint32_t i = 1; i <= 100; i++)
            starts(&f, at * SECOND + i, 100 * (uint32_t)at + i);
        (void)history_settle(f.history, (at + 1) * SECOND);
        /* One check for all, whose answer comes after the sweep. */
        wanted = next_wanted(&f, "/opt/app", true);
        CHECK_EQ(history_next_wanted(f.history, &wanted), 0);
        history_complete(f.history, (at + 1) * SECOND);
        CHECK_EQ(history_floor(f.history), at * SECOND);
        CHECK(!history_set_checked(f.history, wanted.image,
                                   at % 3 ? HISTORY_SAME : HISTORY_UNPROVEN, 0, &wanted));
        CHECK_EQ(history_waits_until(f.history), 0U);
    }
}

TEST(new_files_that_are_mapped_in_each_sweep_hold_the_floor_for_themselves_alone) {
    _cleanup_(fixture_done) Fixture f = with_known_app();

    for (uint64_t at = 5; at < 20; at++) {
        char path[32];

        snprintf(path, sizeof(path), "/opt/%c", (char)('a' + at));
        maps_with(&f, PD_MISC_USER, at * SECOND + 5, 10, 0x100000 + at * 0x1000, path);
        (void)history_settle(f.history, (at + 1) * SECOND);
        history_complete(f.history, (at + 1) * SECOND);
        CHECK_EQ(history_floor(f.history), at * SECOND);
        answer(&f, path, ID_B, sizeof(ID_B));
    }
}

TEST_MAIN()
