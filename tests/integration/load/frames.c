/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * A program without frame pointers whose time is spread over frames of all kinds: deep recursion,
 * callbacks of the C library, frames of a size that is known at run time, realigned stacks, a
 * signal handler, another thread, a coroutine, the vdso, system calls and leaf functions of libc.
 *
 * Usage: frames; it runs until it is killed
 */

enum { DEPTH = 30, WORDS = 300, ROUNDS = 20000 };

static volatile uint64_t sink;

__attribute__((noinline)) static void spin(unsigned rounds) {
    uint64_t x = sink | 1;

    for (unsigned i = 0; i < rounds; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    sink = x;
}

__attribute__((noinline)) static uint64_t descend(unsigned depth) {
    volatile uint64_t kept[3] = {depth, sink, 1};

    if (depth > 0)
        return descend(depth - 1) + kept[0];
    spin(ROUNDS);
    return kept[1];
}

__attribute__((noinline)) static int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;

    spin(3);
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void sort(void) {
    int numbers[WORDS];

    for (unsigned i = 0; i < WORDS; i++)
        numbers[i] = (int)(i * 7919 % 1000);
    qsort(numbers, WORDS, sizeof(numbers[0]), compare);
    sink += (uint64_t)numbers[0];
}

__attribute__((noinline)) static void use_room(size_t size) {
    volatile char *room = alloca(size);

    room[0] = room[size - 1] = 1;
    spin(ROUNDS / 4);
    sink += (uint64_t)room[0];
}

__attribute__((noinline)) static void use_aligned(size_t size) {
    _Alignas(64) volatile char wide[64];
    volatile char *room = alloca(size);

    room[0] = wide[0] = 1;
    spin(ROUNDS / 4);
    use_room(size / 2);
    sink += (uint64_t)(room[0] + wide[0]);
}

__attribute__((noinline)) static void format(void) {
    char text[256];

    for (unsigned i = 0; i < 20; i++)
        (void)snprintf(text, sizeof(text), "%u %s %.3f %p", i, "some words", (double)i / 3,
                       (void *)text);
    sink += strtoul(text, NULL, 10) + strlen(text);
}

__attribute__((noinline)) static void ask_time(void) {
    struct timespec now;

    for (unsigned i = 0; i < 200; i++)
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    sink += (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void ask_kernel(void) {
    char byte;

    for (unsigned i = 0; i < 20; i++)
        (void)!pread(0, &byte, 1, -1);
}

__attribute__((noinline)) static void copy(void) {
    static char from[1 << 16], to[1 << 16];

    for (unsigned i = 0; i < 4; i++)
        memcpy(to, from, sizeof(to));
    sink += (uint64_t)to[0];
}

static void on_timer(int signal) {
    (void)signal;
    descend(3);
}

static ucontext_t caller, coroutine;

static void run_coroutine(void) {
    for (;;) {
        descend(5);
        (void)swapcontext(&coroutine, &caller);
    }
}

__attribute__((noinline)) static void switch_stack(void) {
    (void)swapcontext(&caller, &coroutine);
}

static void start_coroutine(void) {
    static char stack[64 << 10];

    (void)getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof(stack);
    makecontext(&coroutine, run_coroutine, 0);
}

__attribute__((noinline)) static void one_round(void) {
    descend(DEPTH);
    sort();
    use_aligned(1000);
    format();
    ask_time();
    ask_kernel();
    copy();
}

static void *run_thread(void *userdata) {
    (void)userdata;
    for (;;)
        one_round();
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 5000}, .it_value = {.tv_usec = 5000}};
    pthread_t thread;

    start_coroutine();
    (void)sigaction(SIGPROF, &action, NULL);
    (void)setitimer(ITIMER_PROF, &often, NULL);
    if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
        return EXIT_FAILURE;
    for (;;) {
        one_round();
        switch_stack();
    }
}
