/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

/*
 * Keeps every CPU busy, or those named, with deep stacks under two functions that take turns, so
 * that a recording of all CPUs has a sample at each tick. One process a CPU, bound to it, and
 * bound again when the CPU was away.
 *
 * Usage: spin SECONDS [CPU…]     0: until killed
 */

enum { DEPTH = 24, TURN = 4000, TURNS_BOUND = 2000 };

static volatile uint64_t sink;

static uint64_t spin_odd(unsigned depth, uint64_t x);

__attribute__((noinline)) static uint64_t spin_alpha(uint64_t x) {
    for (unsigned i = 0; i < TURN; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

__attribute__((noinline)) static uint64_t spin_beta(uint64_t x) {
    for (unsigned i = 0; i < TURN; i++)
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL + i;
    return x;
}

/* Two functions that call each other, so that no compiler folds the frames. */
__attribute__((noinline)) static uint64_t spin_even(unsigned depth, uint64_t x) {
    if (depth > 0)
        return spin_odd(depth - 1, x * 3) + 1;
    return (x & 1 ? spin_alpha(x) : spin_beta(x)) + 1;
}

__attribute__((noinline)) static uint64_t spin_odd(unsigned depth, uint64_t x) {
    if (depth > 0)
        return spin_even(depth - 1, x * 5) + 1;
    return (x & 1 ? spin_beta(x) : spin_alpha(x)) + 1;
}

static void bind_to(unsigned cpu) {
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
}

static void spin_on(unsigned cpu, uint64_t end_ns) {
    do {
        bind_to(cpu);
        for (unsigned i = 0; i < TURNS_BOUND; i++)
            sink = spin_even(DEPTH, sink);
    } while (load_now_ns() < end_ns);
}

static void start(unsigned cpu, uint64_t end_ns) {
    if (load_fork() == 0) {
        spin_on(cpu, end_ns);
        _exit(EXIT_SUCCESS);
    }
}

int main(int argc, char **argv) {
    uint64_t seconds, end_ns;

    if (argc < 2) {
        fprintf(stderr, "Usage: spin SECONDS [CPU…]\n");
        return 2;
    }
    seconds = load_number(argv[1]);
    end_ns = seconds ? load_now_ns() + seconds * LOAD_NS_PER_S : UINT64_MAX;
    for (int i = 2; i < argc; i++)
        start((unsigned)load_number(argv[i]), end_ns);
    for (unsigned cpu = 0; argc == 2 && cpu < (unsigned)sysconf(_SC_NPROCESSORS_CONF); cpu++)
        start(cpu, end_ns);
    printf("ready\n");
    fflush(stdout);
    while (wait(NULL) > 0)
        continue;
    return EXIT_SUCCESS;
}
