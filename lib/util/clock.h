/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What time it is, in nanoseconds. */

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND 1000000000ULL

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

/* By the clock of the samples. */
static inline uint64_t clock_monotonic_ns(void) {
    return clock_ns(CLOCK_MONOTONIC);
}
