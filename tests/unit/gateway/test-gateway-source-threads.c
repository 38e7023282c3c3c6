/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/source.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "make-root.h"
#include "source/interval-gap.h"
#include "source/live.h"
#include "source/selection-copy.h"
#include "test.h"
#include "util/clock.h"

/* The source without a profd: its windows fail, in the order in which somebody waits for them, and
 * nothing of it hangs. What it reads of a real one is in tests/integration. */

enum { ANSWERS_MAX = 8 };

static struct {
    Loop *loop;
    Source *source;
    char socket[96];
    unsigned long answers[ANSWERS_MAX];
    int errors[ANSWERS_MAX];
    size_t n, expected;
} t;

static void on_interval(void *userdata, Interval *interval) {
    abort();
}

static void on_done(void *userdata, int error, Interval *interval) {
    t.errors[t.n] = error;
    t.answers[t.n++] = (unsigned long)userdata;
    if (t.n == t.expected)
        loop_stop(t.loop);
}

static void begin(void) {
    begin_root();
    t.n = t.expected = 0;
    snprintf(t.socket, sizeof(t.socket), "%s/socket", root);
    if (loop_new(&t.loop) < 0 || source_new(&(SourceOptions){.socket = t.socket,
                                                             .interval_ns = NS_PER_SECOND,
                                                             .loop = t.loop,
                                                             .on_interval = on_interval},
                                            &t.source) < 0)
        abort();
}

static void end(void) {
    source_free(t.source);
    loop_free(t.loop);
    end_root();
}

static SourceJob *ask(unsigned long number, bool is_urgent) {
    const SourceWindow window = {
        .since_ns = NS_PER_SECOND, .until_ns = 2 * NS_PER_SECOND, .is_urgent = is_urgent};
    SourceJob *job = NULL;

    if (source_window(t.source, &window, on_done, (void *)number, &job) < 0)
        abort();
    return job;
}

/* A server that takes connections and never answers. */
static int listen_mutely(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", t.socket);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 8) < 0)
        abort();
    return fd;
}

TEST(window_without_profd_fails_and_can_be_asked_for_again) {
    begin();
    t.expected = 2;
    (void)ask(1, false);
    (void)ask(2, false);
    CHECK_OK(loop_run(t.loop));
    CHECK_EQ(t.errors[0], -ENOTCONN);
    CHECK_EQ(t.answers[0], 1);
    CHECK_EQ(t.answers[1], 2);
    end();
}

TEST(window_that_is_empty_or_has_not_ended_is_refused) {
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    SourceJob *job = NULL;

    begin();
    CHECK_EQ(source_window(t.source, &(SourceWindow){.since_ns = 5000, .until_ns = 5999}, on_done,
                           NULL, &job),
             -EINVAL);
    CHECK_EQ(source_window(
                 t.source,
                 &(SourceWindow){.since_ns = now_ns, .until_ns = now_ns + 3600 * NS_PER_SECOND},
                 on_done, NULL, &job),
             -EINVAL);
    CHECK(!job);
    end();
}

TEST(urgent_windows_come_first_and_cancelled_ones_never) {
    SourceJob *jobs[5];
    SourceStatus status;
    int fd, client;

    begin();
    fd = listen_mutely();
    /* The thread waits for an answer to the first one, so the others are all there. */
    jobs[0] = ask(0, false);
    client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    close(client);
    jobs[1] = ask(1, false);
    jobs[2] = ask(2, false);
    jobs[3] = ask(3, true);
    jobs[4] = ask(4, true);
    source_job_cancel(jobs[0]);
    source_job_cancel(jobs[2]);
    close(fd);
    t.expected = 3;
    CHECK_OK(loop_run(t.loop));
    CHECK_EQ(t.n, 3);
    for (size_t i = 0; i < t.n; i++)
        CHECK(t.answers[i] != 0 && t.answers[i] != 2);
    CHECK_EQ(t.answers[2], 1);
    source_status(t.source, &status);
    CHECK_EQ(status.queued_windows, 0);
    end();
}

TEST(status_says_why_there_is_no_connection) {
    SourceStatus status = {};

    begin();
    CHECK_OK(source_start(t.source));
    while (!*status.problem) {
        (void)usleep(1000);
        source_status(t.source, &status);
    }
    CHECK(!status.connected);
    CHECK(strstr(status.problem, "nothing listens at"));
    CHECK_EQ(status.until_ns, 0);
    end();
}

TEST(source_ends_while_profd_does_not_answer) {
    int fd, client;

    begin();
    fd = listen_mutely();
    CHECK_OK(source_start(t.source));
    (void)ask(1, false);
    client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    end();
    close(client);
    close(fd);
}

/* It may be given an interval late, and all of them at a time after a pause of profd. */
TEST(reading_hangs_if_nothing_is_handed_over_for_long) {
    const uint64_t s = NS_PER_SECOND;
    LiveStatus status = {.connected = true, .active_ns = 1000 * s};

    CHECK(!live_hangs(&status, 10 * s, 1000 * s));
    CHECK(!live_hangs(&status, 10 * s, 1060 * s));
    CHECK(live_hangs(&status, 10 * s, 1061 * s));
    CHECK(!live_hangs(&status, 600 * s, 2830 * s));
    CHECK(live_hangs(&status, 600 * s, 2831 * s));
    status.connected = false;
    CHECK(!live_hangs(&status, 10 * s, 5000 * s));
}

TEST(selection_of_a_window_is_its_own) {
    uint32_t pids[] = {4, 5};
    char word[] = "web";
    const char *comms[] = {word};
    const Selection from = {.pids = pids, .n_pids = 2, .comms = comms, .n_comms = 1};
    Selection copy;

    CHECK_OK(selection_copy(&from, &copy));
    pids[0] = 7;
    word[0] = 'x';
    CHECK(selection_has_pid(&copy, 4));
    CHECK(!selection_has_pid(&copy, 7));
    CHECK(selection_has_comm(&copy, (Bytes){.data = (const uint8_t *)"web", .size = 3}));
    CHECK(selection_has_tid(&copy, 99));
    selection_copy_done(&copy);
    CHECK_OK(selection_copy(NULL, &copy));
    CHECK_EQ(selection_kinds(&copy), 0);
}

static PdStreamMark gap_of(uint64_t from_s, uint64_t to_s, PdGapReason reason) {
    return (PdStreamMark){.is_gap = true,
                          .real_offset = 1000 * NS_PER_SECOND,
                          .gap = {.from_ns = from_s * NS_PER_SECOND,
                                  .to_ns = to_s == 0 ? PD_GAP_OPEN : to_s * NS_PER_SECOND,
                                  .cpu = PD_ALL_CPUS,
                                  .reason = reason}};
}

static IntervalMissing missing_of(IntervalGaps *gaps, uint64_t since_s, uint64_t until_s) {
    IntervalMissing missing = {UINT64_MAX, UINT64_MAX};

    (void)interval_gaps_take(gaps, since_s * NS_PER_SECOND, until_s * NS_PER_SECOND, &missing);
    return missing;
}

static uint64_t missing_in(IntervalGaps *gaps, uint64_t since_s, uint64_t until_s) {
    return missing_of(gaps, since_s, until_s).all_ns / NS_PER_SECOND;
}

TEST(gap_counts_in_each_interval_that_it_lies_in) {
    IntervalGaps gaps = {};
    const PdStreamMark marks[] = {gap_of(8, 13, PD_GAP_DOWN), gap_of(2, 3, PD_GAP_OFFLINE),
                                  gap_of(25, 0, PD_GAP_PAUSED)};

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        CHECK_OK(interval_gaps_add(&gaps, &marks[i]));
    CHECK_EQ(missing_in(&gaps, 1000, 1010), 2);
    CHECK_EQ(missing_in(&gaps, 1010, 1020), 3);
    CHECK_EQ(missing_in(&gaps, 1020, 1030), 5);
    CHECK_EQ(missing_in(&gaps, 1030, 1040), 10);
    interval_gaps_done(&gaps);
}

TEST(what_was_deleted_is_told_apart_from_what_was_not_recorded) {
    IntervalGaps gaps = {};
    const PdStreamMark marks[] = {gap_of(1, 13, PD_GAP_DELETED), gap_of(15, 17, PD_GAP_DOWN)};
    IntervalMissing missing;

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        CHECK_OK(interval_gaps_add(&gaps, &marks[i]));
    missing = missing_of(&gaps, 1000, 1010);
    CHECK_EQ(missing.all_ns, 9 * NS_PER_SECOND);
    CHECK_EQ(missing.deleted_ns, 9 * NS_PER_SECOND);
    missing = missing_of(&gaps, 1010, 1020);
    CHECK_EQ(missing.all_ns, 5 * NS_PER_SECOND);
    CHECK_EQ(missing.deleted_ns, 3 * NS_PER_SECOND);
    missing = missing_of(&gaps, 1020, 1030);
    CHECK_EQ(missing.all_ns, 0);
    CHECK_EQ(missing.deleted_ns, 0);
    interval_gaps_done(&gaps);
}

TEST_MAIN()
