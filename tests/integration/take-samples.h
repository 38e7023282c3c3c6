/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Runs a command and takes samples of it: registers and a copy of the stack of each. The command
 * is stopped afterwards and stays until the samples are given back, so that its mappings can be
 * read. For tests and benchmarks of lib/unwind.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unwind/unwind.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/macro.h"

enum {
    SAMPLES_RING_PAGES = 1 << 11,
    SAMPLES_CPUS_MAX = 256,
    SAMPLES_FREQUENCY = 3999,
};

#if defined(__aarch64__)
#define SAMPLES_MACHINE EM_AARCH64
#define SAMPLES_MASK    0x1ffffffffULL
#else
#define SAMPLES_MACHINE EM_X86_64
#define SAMPLES_MASK    (0x1ffULL | 0xffULL << 16)
#endif

typedef struct TakenSample {
    uint32_t pid, tid;
    uint8_t *bytes; /* what the registers and the stack lie in */
    UnwindSample sample;
} TakenSample;

typedef struct Samples {
    pid_t pid;
    TakenSample *all;
    size_t n;
} Samples;

typedef struct SampleRing {
    int fd;
    struct perf_event_mmap_page *page;
} SampleRing;

static inline int samples_open(SampleRing *ring, pid_t pid, int cpu, uint32_t dump) {
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = SAMPLES_FREQUENCY,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = SAMPLES_MASK,
        .sample_stack_user = dump,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .exclude_callchain_user = 1,
    };
    size_t size = (size_t)sysconf(_SC_PAGESIZE) * (SAMPLES_RING_PAGES + 1);

    ring->fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (ring->fd < 0)
        return -errno;
    ring->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    return ring->page == MAP_FAILED ? -errno : 0;
}

/* A SAMPLE record as the kernel wrote it; the bytes stay where they are. */
static inline void samples_add(Samples *samples, uint8_t *bytes, size_t size) {
    Cursor c = cursor_of(bytes, size, false);
    TakenSample taken = {.bytes = bytes};
    TakenSample *to;
    uint64_t room;
    Bytes stack;

    (void)cursor_u64(&c);
    taken.pid = cursor_u32(&c);
    taken.tid = cursor_u32(&c);
    taken.sample.machine = SAMPLES_MACHINE;
    taken.sample.mask = SAMPLES_MASK;
    taken.sample.abi = cursor_u64(&c);
    if (taken.sample.abi != PERF_SAMPLE_REGS_ABI_NONE)
        taken.sample.registers =
            cursor_array(&c, (unsigned)__builtin_popcountll(SAMPLES_MASK), sizeof(uint64_t));
    room = cursor_u64(&c);
    stack = cursor_bytes(&c, room);
    if (room > 0)
        stack.size = MIN(stack.size, cursor_u64(&c));
    taken.sample.stack = stack;
    if (!c.failed && stack.size > 0) {
        size_t used = (size_t)(stack.data - bytes) + stack.size;
        size_t registers = (size_t)(taken.sample.registers.data - bytes);

        taken.bytes = realloc(bytes, used);
        if (!taken.bytes)
            abort();
        taken.sample.registers.data = taken.bytes + registers;
        taken.sample.stack.data = taken.bytes + used - stack.size;
    }
    to = !c.failed && taken.sample.abi == PERF_SAMPLE_REGS_ABI_64
             ? array_grow(&samples->all, &samples->n)
             : NULL;
    if (to)
        *to = taken;
    else
        free(taken.bytes);
}

static inline void samples_drain(Samples *samples, SampleRing *ring) {
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->page->data_tail, room = ring->page->data_size;
    const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;

    while (tail < head) {
        struct perf_event_header header;
        uint8_t *bytes;

        memcpy(&header, data + tail % room, sizeof(header));
        bytes = malloc(header.size);
        if (!bytes)
            abort();
        for (size_t i = 0; i < header.size; i += 8)
            memcpy(bytes + i, data + (tail + i) % room, 8);
        if (header.type == PERF_RECORD_SAMPLE)
            samples_add(samples, bytes, header.size);
        else
            free(bytes);
        tail += header.size;
    }
    __atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* A child that runs the command when a byte comes; what it prints is dropped. */
static inline pid_t samples_fork(char *const argv[], int *ret_go) {
    int go[2], null;
    char byte;
    pid_t pid;

    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3 && null >= 0; i++)
            (void)dup2(null, i);
        if (read(go[0], &byte, 1) == 1)
            execvp(argv[0], argv);
        _exit(127);
    }
    close(go[0]);
    *ret_go = go[1];
    return pid < 0 ? -errno : pid;
}

/* Samples for so many milliseconds, each with up to `dump` bytes of stack: 0, or a negative errno.
 */
static inline int samples_take(char *const argv[], unsigned ms, uint32_t dump, Samples *ret) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    long cpus = MIN(sysconf(_SC_NPROCESSORS_ONLN), (long)SAMPLES_CPUS_MAX);
    SampleRing rings[SAMPLES_CPUS_MAX];
    uint64_t end;
    int go = -1, r = 0, n = 0;

    *ret = (Samples){.pid = samples_fork(argv, &go)};
    if (ret->pid < 0)
        return ret->pid;
    while (r == 0 && n < cpus) {
        r = samples_open(&rings[n], ret->pid, n, dump);
        n += r == 0;
    }
    if (r == 0 && write(go, "", 1) != 1)
        r = -EIO;
    close(go);
    end = clock_ns(CLOCK_MONOTONIC) + ms * 1000000ULL;
    while (r == 0 && clock_ns(CLOCK_MONOTONIC) < end) {
        (void)poll(NULL, 0, 20);
        for (int i = 0; i < n; i++)
            samples_drain(ret, &rings[i]);
    }
    (void)kill(ret->pid, SIGSTOP);
    for (int i = 0; i < n; i++) {
        munmap(rings[i].page, page * (SAMPLES_RING_PAGES + 1));
        close(rings[i].fd);
    }
    return r;
}

static inline void samples_done(Samples *samples) {
    for (size_t i = 0; i < samples->n; i++)
        free(samples->all[i].bytes);
    free(samples->all);
    if (samples->pid > 0) {
        (void)kill(samples->pid, SIGKILL);
        (void)waitpid(samples->pid, NULL, 0);
    }
    *samples = (Samples){};
}
