/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-task.h"

#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "util/clock.h"

/* The loop learns when a task has ended, and waits for no thread that hangs. */

typedef struct Work {
    Loop *loop;
    int ends[2];          /* a task reads from it, as from a disk: without an end */
    atomic_bool is_heard; /* it goes on when it must stop */
    atomic_bool has_run;
    bool is_done;
} Work;

static void run(void *userdata, const atomic_bool *stop) {
    Work *work = userdata;
    char byte;

    while (atomic_load(&work->is_heard) && !atomic_load(stop))
        (void)usleep(1000);
    if (!atomic_load(&work->is_heard))
        (void)!read(work->ends[0], &byte, 1);
    atomic_store(&work->has_run, true);
}

static void done(void *userdata) {
    Work *work = userdata;

    work->is_done = true;
    loop_stop(work->loop);
}

static S3Task *begin(Work *work, bool is_heard) {
    S3Task *task = NULL;

    atomic_store(&work->is_heard, is_heard);
    if (pipe(work->ends) < 0 || loop_new(&work->loop) < 0 ||
        s3_task_start(
            &(S3TaskOptions){.loop = work->loop, .run = run, .done = done, .userdata = work},
            &task) < 0)
        abort();
    return task;
}

static void end(Work *work) {
    loop_free(work->loop);
    close(work->ends[0]);
    close(work->ends[1]);
}

TEST(task_that_has_ended_is_reported_to_the_loop) {
    Work work = {};

    (void)begin(&work, false);
    CHECK_EQ(write(work.ends[1], "x", 1), 1);
    CHECK_OK(loop_run(work.loop));
    CHECK(work.is_done && atomic_load(&work.has_run));
    end(&work);
}

TEST(task_that_is_canceled_ends_and_reports_nothing) {
    Work work = {};
    S3Task *task = begin(&work, true);

    CHECK(s3_task_cancel(task));
    CHECK(atomic_load(&work.has_run) && !work.is_done);
    CHECK(s3_task_cancel(NULL));
    end(&work);
}

/* In a process of its own, which ends at once and with what hangs in it. */
static bool succeeds_in_a_child(bool (*does)(void)) {
    pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        (void)alarm(60);
        _exit(does() ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The thread goes on when the disk answers. */
static bool leaves_a_task(void) {
    Work work = {};
    S3Task *task = begin(&work, false);
    uint64_t begun_ns = clock_monotonic_ns();
    bool is_left = !s3_task_cancel(task) && !atomic_load(&work.has_run) &&
                   clock_monotonic_ns() - begun_ns < 20 * NS_PER_SECOND;

    is_left = is_left && write(work.ends[1], "x", 1) == 1;
    for (unsigned i = 0; i < 1000 && is_left && !atomic_load(&work.has_run); i++)
        (void)usleep(10000);
    return is_left && atomic_load(&work.has_run) && !work.is_done;
}

TEST(canceling_waits_a_few_seconds_for_a_task_that_hangs) {
    CHECK(succeeds_in_a_child(leaves_a_task));
}

TEST_MAIN()
