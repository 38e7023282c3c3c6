/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where a stream in order of time is cut: at multiples of the interval of the wall clock, so that
 * every host cuts at the same moments. It counts with numbers alone and touches no stream.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The difference of CLOCK_REALTIME from CLOCK_MONOTONIC by which all threads cut. profd measures it
 * for each segment, a few microseconds apart; if each cut were made by the last one, a sample near
 * it could be in two intervals or in none, one of which is followed and the other one read as a
 * window. Zeroed: not known.
 */
typedef struct EdgeClock {
    _Atomic uint64_t real_offset;
} EdgeClock;

/* Returns the difference to cut by, for a stream that says `measured`: the known one, or `measured`
 * if the clock was set since. */
uint64_t edge_clock_of(EdgeClock *clock, uint64_t measured);
/* Whether the clock was set between two measurements. */
bool edge_clock_is_set(uint64_t before, uint64_t after);
/* The same as edge_clock_of(); all threads cut by it from now on. */
uint64_t edge_clock_adopt(EdgeClock *clock, uint64_t measured);

enum { CUTTER_JUMP = 8 };

typedef struct Cutter {
    uint64_t interval_ns;
    uint64_t since_ns, until_ns; /* of the running interval, CLOCK_REALTIME */
    uint64_t real_offset;        /* from CLOCK_MONOTONIC, modulo 2^64 */
    uint64_t marks[2];           /* the last two watermarks, the older one first */
    uint64_t shift_ns;           /* of all bounds, after the clock was set back */
    bool is_torn;                /* the clock was set in the running interval: it is a window */
} Cutter;

/* Begins with the interval that `now_ns` (CLOCK_REALTIME) lies in. The clocks differ by real_offset
 * until a watermark says it better. */
void cutter_begin(Cutter *cutter, uint64_t interval_ns, uint64_t now_ns, uint64_t real_offset);
/* Another stream continues: its watermarks count anew. */
void cutter_resume(Cutter *cutter);
/* A watermark, and the difference of the clocks at that time. True: the clock was set, so that
 * cutter_restart() must follow. */
bool cutter_mark(Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset);
/* Whether the running interval has ended: a sample of this time is behind it, or everything before
 * its end has come. */
bool cutter_is_behind(const Cutter *cutter, uint64_t monotonic_ns);
bool cutter_is_complete(const Cutter *cutter);
/* Goes on to the next interval. If the sample or watermark lies more than CUTTER_JUMP intervals
 * behind it, goes on there. */
void cutter_advance(Cutter *cutter, uint64_t monotonic_ns);
/* Whether the clock was set back to before the running interval, which then ends here. */
bool cutter_comes_again(const Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset);
/* After the clock was set: goes on with the interval of this time. */
void cutter_restart(Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset);
/* In CLOCK_REALTIME. */
uint64_t cutter_real_ns(const Cutter *cutter, uint64_t monotonic_ns);
