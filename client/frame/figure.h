/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Figures for people, in the style of systemctl. Times are microseconds since 1970, spans are
 * microseconds.
 */

#include <stdint.h>
#include <time.h>

#include "util/buffer.h"

/* "512B", "64.0M". */
void figure_size(Buffer *out, uint64_t bytes);
/* "1,234,567". */
void figure_count(Buffer *out, uint64_t n);
/* "12 ms", "5 min 20 s", "1 h 30 min", "2 days 3 h". */
void figure_span(Buffer *out, uint64_t us);
/* The same, rounded to a second, and to a tenth of a second below a minute: "1.5 s", "1 min 21
 * s". */
void figure_span_tenths(Buffer *out, uint64_t us);
/* "Sat 2026-11-21 15:00:00 UTC", in the local zone. */
void figure_moment(Buffer *out, uint64_t us);
/* How many minutes the local clock is ahead of UTC then. */
int figure_zone_min(uint64_t us);
/* The same, to the second, without weekday and zone: "2026-11-21 15:00:00". */
void figure_moment_short(Buffer *out, uint64_t us);
/* "5 min ago", "now", "in 5 min". */
void figure_ago(Buffer *out, uint64_t us, uint64_t now_us);
/* "Sat 2026-11-21 15:00:00 UTC (5 min ago)". */
void figure_since(Buffer *out, uint64_t us, uint64_t now_us);

static inline uint64_t figure_now_us(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
