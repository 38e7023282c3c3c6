/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What time it is, in nanoseconds, and how many of them other units have. */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US     UINT64_C(1000)
#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_SECOND UINT64_C(1000000000)
#define US_PER_MS     UINT64_C(1000)
#define US_PER_SECOND UINT64_C(1000000)

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns) {
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND),
                             .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

/* Returns by how much the wall clock is ahead of CLOCK_BOOTTIME. */
static inline uint64_t clock_booted_ns(void) {
    return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
}

/* Whether a file was written (wall clock) after a process had begun (CLOCK_BOOTTIME). Both times
 * are rounded down to ticks, of up to 10 ms. */
static inline bool clock_is_since_start(uint64_t written_ns, uint64_t start_ns) {
    return written_ns + 20 * NS_PER_MS >= clock_booted_ns() + start_ns;
}

/* The clock of the samples. */
static inline uint64_t clock_monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
