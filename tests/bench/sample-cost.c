/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/macro.h"

/*
 * What one sample costs the sampled program, by the way in which its stack is taken: page faults
 * are sampled, each of them, at a depth of 20 frames. Prints nanoseconds that a fault takes beyond
 * one that is not sampled, for this program as it was built: with frame pointers or without.
 */

enum {
    PAGES = 2048,
    PAGE = 4096,
    RING_BYTES = 4 << 20,
    TAKEN_EACH = 64, /* faults until the ring is given back */
    DEPTH = 20,
    ROUNDS = 400,
    STACK_BYTES = 16384,
    REGISTERS = 0xff0fff,
};

/* How the stack of a sample is taken; rows of the result. */
static const struct Way {
    const char *name;
    bool is_sampled, has_chain, has_stack, has_user_chain;
} ways[] = {
    {"no samples", false, false, false, false},
    {"no stack", true, false, false, false},
    {"fp", true, true, false, true},
    {"unwind", true, true, true, false},
    {"auto", true, true, true, true},
};

typedef struct Cost {
    uint8_t *memory;
    struct perf_event_mmap_page *ring; /* NULL: nothing is sampled */
} Cost;

static uint64_t cpu_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Nanoseconds of a page fault. */
static double fault(const Cost *cost) {
    uint64_t begin;

    (void)madvise(cost->memory, (size_t)PAGES * PAGE, MADV_DONTNEED);
    begin = cpu_ns();
    for (unsigned i = 0; i < PAGES; i++) {
        *(volatile uint8_t *)(cost->memory + (size_t)i * PAGE) = 1;
        if (cost->ring && i % TAKEN_EACH == 0)
            __atomic_store_n(&cost->ring->data_tail, cost->ring->data_head, __ATOMIC_RELEASE);
    }
    return (double)(cpu_ns() - begin) / PAGES;
}

/* The best quarter: other work on the machine only adds. */
__attribute__((noinline)) static double measure(const Cost *cost, unsigned depth) {
    double rounds[ROUNDS];
    volatile double result;

    if (depth > 0) {
        result = measure(cost, depth - 1);
        return result;
    }
    for (unsigned i = 0; i < ROUNDS; i++)
        rounds[i] = fault(cost);
    qsort(rounds, ROUNDS, sizeof(*rounds), compare);
    return rounds[ROUNDS / 4];
}

static int open_event(const struct Way *way) {
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .watermark = 1,
        .wakeup_watermark = RING_BYTES,
        .exclude_callchain_user = !way->has_user_chain,
    };

    if (way->has_chain)
        attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
    if (way->has_stack) {
        attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = REGISTERS;
        attr.sample_stack_user = STACK_BYTES;
    }
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* -1: such events cannot be opened here. */
static double measure_way(Cost *cost, const struct Way *way) {
    size_t size = RING_BYTES + (size_t)getpagesize();
    int fd = way->is_sampled ? open_event(way) : -1;
    void *ring = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    double ns = -1;

    cost->ring = ring == MAP_FAILED ? NULL : ring;
    if (cost->ring || !way->is_sampled)
        ns = measure(cost, DEPTH);
    if (cost->ring)
        (void)munmap(cost->ring, size);
    if (fd >= 0)
        (void)close(fd);
    return ns;
}

int main(void) {
    Cost cost = {.memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)};
    double base = 0;

    if (cost.memory == MAP_FAILED)
        return EXIT_FAILURE;
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        double ns = measure_way(&cost, &ways[i]);

        if (i == 0)
            base = ns;
        if (ns < 0)
            printf("%-12s cannot be measured here\n", ways[i].name);
        else
            printf("%-12s %6.0f ns\n", ways[i].name, ns - base);
    }
    return EXIT_SUCCESS;
}
