/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "test.h"
#include "util/clock.h"

/* Jobs that wait until the test lets them go on, and note in which thread and order they ran. */

enum { JOBS = 5 };

typedef struct Bench {
    Loop *loop;
    Worker *worker;
    sem_t begun, released;
    pthread_t runner;
    unsigned ran, handed_back, stop_at;
} Bench;

static void bench_run(void *userdata) {
    Bench *bench = userdata;

    sem_post(&bench->begun);
    sem_wait(&bench->released);
    bench->runner = pthread_self();
    bench->ran++;
}

static void bench_done(void *userdata) {
    Bench *bench = userdata;

    if (++bench->handed_back == bench->stop_at)
        loop_stop(bench->loop);
}

static int bench_add(Bench *bench, size_t jobs_max) {
    return worker_add(bench->worker, &(WorkerJob){bench_run, bench_done, bench}, jobs_max);
}

static int bench_init(Bench *bench, WorkerOptions options) {
    int r;

    *bench = (Bench){};
    options.name = "bench";
    sem_init(&bench->begun, 0, 0);
    sem_init(&bench->released, 0, 0);
    r = loop_new(&bench->loop);
    return r == 0 ? worker_new(bench->loop, &options, &bench->worker) : r;
}

static void bench_release(Bench *bench, unsigned n) {
    while (n-- > 0)
        sem_post(&bench->released);
}

/* Lets jobs that still wait go on, so that the end of the worker does not hang. */
static void bench_close(Bench *bench) {
    bench_release(bench, 2 * JOBS);
    worker_free(bench->worker);
    loop_free(bench->loop);
}

TEST(jobs_run_in_the_thread_and_come_back_in_the_loop) {
    _cleanup_(bench_close) Bench bench;

    CHECK_OK(bench_init(&bench, (WorkerOptions){.starts_on_work = true}));
    for (unsigned i = 0; i < JOBS; i++)
        CHECK_OK(bench_add(&bench, JOBS));
    bench_release(&bench, JOBS);
    bench.stop_at = JOBS;
    CHECK_OK(loop_run(bench.loop));
    CHECK_EQ(bench.ran, JOBS);
    CHECK(!pthread_equal(bench.runner, pthread_self()));
}

TEST(one_job_too_many_is_refused_until_another_one_came_back) {
    _cleanup_(bench_close) Bench bench;

    CHECK_OK(bench_init(&bench, (WorkerOptions){}));
    CHECK_OK(bench_add(&bench, 2));
    CHECK_OK(bench_add(&bench, 2));
    CHECK_EQ(bench_add(&bench, 2), -EBUSY);
    bench_release(&bench, 2);
    bench.stop_at = 2;
    CHECK_OK(loop_run(bench.loop));
    CHECK_OK(bench_add(&bench, 2));
}

/* The end of the worker begins meanwhile. */
static void *bench_release_later(void *bench) {
    (void)usleep(300000);
    bench_release(bench, JOBS);
    return NULL;
}

TEST(the_end_hands_back_jobs_that_did_not_run) {
    _cleanup_(bench_close) Bench bench;
    pthread_t later;

    CHECK_OK(bench_init(&bench, (WorkerOptions){.end_ns = 60 * NS_PER_SECOND}));
    for (unsigned i = 0; i < JOBS; i++)
        CHECK_OK(bench_add(&bench, JOBS));
    sem_wait(&bench.begun);
    CHECK_EQ(pthread_create(&later, NULL, bench_release_later, &bench), 0);
    CHECK(worker_end(TAKE_PTR(bench.worker)));
    (void)pthread_join(later, NULL);
    CHECK_EQ(bench.handed_back, JOBS);
    CHECK(bench.ran < JOBS);
}

TEST(the_end_of_a_worker_that_finishes_does_every_job) {
    _cleanup_(bench_close) Bench bench;

    CHECK_OK(bench_init(&bench, (WorkerOptions){.finishes = true}));
    for (unsigned i = 0; i < JOBS; i++)
        CHECK_OK(bench_add(&bench, JOBS));
    bench_release(&bench, JOBS);
    CHECK(worker_end(TAKE_PTR(bench.worker)));
    CHECK_EQ(bench.ran, JOBS);
    CHECK_EQ(bench.handed_back, JOBS);
}

TEST(the_end_does_not_wait_for_ever_and_leaves_the_job_that_hangs) {
    /* The thread goes on after this test. */
    static Bench bench;

    CHECK_OK(bench_init(&bench, (WorkerOptions){.end_ns = NS_PER_MS}));
    for (unsigned i = 0; i < JOBS; i++)
        CHECK_OK(bench_add(&bench, JOBS));
    sem_wait(&bench.begun);
    CHECK(!worker_end(TAKE_PTR(bench.worker)));
    CHECK_EQ(bench.handed_back, JOBS - 1);
    loop_free(bench.loop);
}

TEST_MAIN()
