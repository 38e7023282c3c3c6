/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/*
 * What the loads share: time, work that takes a known time in a known function, and children that
 * do not outlive the program that made them.
 */

enum { LOAD_NS_PER_MS = 1000000, LOAD_NS_PER_S = 1000000000 };

uint64_t load_now_ns(void);
void load_sleep_ns(uint64_t ns);
/* fork() whose child ends with us; ends the program where the kernel refuses. */
int load_fork(void);
/* Prints what failed and ends the program. */
void load_die(const char *what) __attribute__((noreturn));
/* Parses a number of the command line, or ends the program. */
uint64_t load_number(const char *text);

/*
 * A function that works for some time, under a name that a test looks for: each sample that falls
 * into NAME_work was taken where this was called, whatever a recording says.
 */
#define LOAD_DEFINE_WORK(name)                                                                     \
    __attribute__((noinline)) static uint64_t name##_work(uint64_t ns) {                           \
        uint64_t x = 1;                                                                            \
                                                                                                   \
        for (uint64_t end = load_now_ns() + ns; load_now_ns() < end;)                              \
            for (unsigned i = 0; i < 4000; i++)                                                    \
                x = x * 6364136223846793005ULL + 1442695040888963407ULL;                           \
        __asm__ volatile("" : "+r"(x));                                                            \
        return x;                                                                                  \
    }
