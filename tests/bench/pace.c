/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * Measures how fast a load runs, for the bench: a thread on each CPU works under 20 frames and
 * counts its rounds. For each line on stdin it prints all rounds so far, and their CPU time in
 * nanoseconds. What a recorder costs the load, beyond the CPU time of its own processes, slows the
 * second figure without being in it.
 *
 * Usage: pace
 */

enum { DEPTH = 20, ROUNDS = 4000, CPUS_MAX = 1024 };

typedef struct Worker {
    pthread_t thread;
    unsigned cpu;
    _Atomic uint64_t rounds;
} Worker;

static uint64_t work_level(unsigned depth, uint64_t x);

/* Two functions that call each other, so that no compiler folds the frames. */
__attribute__((noinline)) static uint64_t work_other(unsigned depth, uint64_t x) {
    return work_level(depth, x * 3) + 1;
}

__attribute__((noinline)) static uint64_t work_level(unsigned depth, uint64_t x) {
    if (depth > 0)
        return work_other(depth - 1, x) + 1;
    for (unsigned i = 0; i < ROUNDS; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

static void *work(void *userdata) {
    Worker *worker = userdata;
    volatile uint64_t sink = 1;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(worker->cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
    for (;;) {
        sink = work_level(DEPTH / 2, sink);
        atomic_fetch_add_explicit(&worker->rounds, 1, memory_order_relaxed);
    }
    return NULL;
}

static uint64_t cpu_time_ns(pthread_t thread) {
    struct timespec t = {};
    clockid_t clock;

    if (pthread_getcpuclockid(thread, &clock) == 0)
        (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int main(void) {
    static Worker workers[CPUS_MAX];
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    for (long i = 0; i < n && i < CPUS_MAX; i++) {
        workers[i].cpu = (unsigned)i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return EXIT_FAILURE;
    }
    for (int c; (c = getchar()) != EOF;) {
        uint64_t rounds = 0, cpu_ns = 0;

        if (c != '\n')
            continue;
        for (long i = 0; i < n && i < CPUS_MAX; i++) {
            cpu_ns += cpu_time_ns(workers[i].thread);
            rounds += atomic_load_explicit(&workers[i].rounds, memory_order_relaxed);
        }
        printf("%llu %llu\n", (unsigned long long)rounds, (unsigned long long)cpu_ns);
        (void)fflush(stdout);
    }
    return EXIT_SUCCESS;
}
