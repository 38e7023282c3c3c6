/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/cutter.h"

#include "util/clock.h"
#include "util/macro.h"

/*
 * Samples come in order of time, so the first one behind the end of an interval shows that all
 * samples before the end have come. On an idle host no sample comes: then the second watermark
 * after the one that passed the end shows it, because a watermark overtakes records that are still
 * put in order. Between watermarks the clocks differ by what the last one says; a difference that
 * changes by a second at once means that somebody set the clock. The interval into which it was set
 * is torn: a window has the samples of it all. A clock that was set back lets times come again, so
 * later intervals get other bounds, a little beside those that were used: engines discard what has
 * the time of something else, and a file is named by it.
 */

#define CLOCK_STEP_NS NS_PER_SECOND
/* Two measurements of one difference are closer. */
#define CLOCK_NOISE_NS NS_PER_MS
/* More than the parts of an interval are apart. */
#define CUTTER_SHIFT_NS (10 * NS_PER_MS)

static uint64_t cutter_apart(uint64_t a, uint64_t b) {
    return MIN(a - b, b - a);
}

uint64_t edge_clock_of(EdgeClock *clock, uint64_t measured) {
    uint64_t known = atomic_load(&clock->real_offset);

    return known != 0 && cutter_apart(known, measured) < CLOCK_NOISE_NS ? known : measured;
}

uint64_t edge_clock_adopt(EdgeClock *clock, uint64_t measured) {
    uint64_t offset = edge_clock_of(clock, measured);

    atomic_store(&clock->real_offset, offset);
    return offset;
}

bool edge_clock_is_set(uint64_t before, uint64_t after) {
    return cutter_apart(before, after) >= CLOCK_STEP_NS;
}

void cutter_begin(Cutter *cutter, uint64_t interval_ns, uint64_t now_ns, uint64_t real_offset) {
    *cutter = (Cutter){.interval_ns = interval_ns,
                       .since_ns = now_ns - now_ns % interval_ns,
                       .real_offset = real_offset};
    cutter->until_ns = cutter->since_ns + interval_ns;
}

void cutter_resume(Cutter *cutter) {
    cutter->marks[0] = cutter->marks[1] = 0;
}

uint64_t cutter_real_ns(const Cutter *cutter, uint64_t monotonic_ns) {
    return monotonic_ns + cutter->real_offset;
}

bool cutter_mark(Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset) {
    if (edge_clock_is_set(cutter->real_offset, real_offset))
        return true;
    cutter->real_offset = real_offset;
    cutter->marks[0] = cutter->marks[1];
    cutter->marks[1] = MAX(cutter->marks[1], monotonic_ns);
    return false;
}

bool cutter_is_behind(const Cutter *cutter, uint64_t monotonic_ns) {
    return cutter_real_ns(cutter, monotonic_ns) >= cutter->until_ns;
}

bool cutter_is_complete(const Cutter *cutter) {
    return cutter->marks[0] > 0 && cutter_is_behind(cutter, cutter->marks[0]);
}

void cutter_advance(Cutter *cutter, uint64_t monotonic_ns) {
    uint64_t real_ns = cutter_real_ns(cutter, monotonic_ns), interval = cutter->interval_ns;

    cutter->is_torn = false;
    cutter->since_ns = cutter->until_ns;
    if (real_ns > cutter->since_ns && real_ns - cutter->since_ns > CUTTER_JUMP * interval)
        cutter->since_ns = real_ns - (real_ns - cutter->shift_ns) % interval;
    cutter->until_ns = cutter->since_ns + interval;
}

bool cutter_comes_again(const Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset) {
    return monotonic_ns + real_offset < cutter->since_ns;
}

void cutter_restart(Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset) {
    bool comes_again = cutter_comes_again(cutter, monotonic_ns, real_offset);
    uint64_t shift_ns = cutter->shift_ns + (comes_again ? CUTTER_SHIFT_NS : 0);
    uint64_t interval_ns = cutter->interval_ns, real_ns = monotonic_ns + real_offset;

    shift_ns %= interval_ns;
    cutter_begin(cutter, interval_ns, real_ns - MIN(real_ns, shift_ns), real_offset);
    cutter->shift_ns = shift_ns;
    cutter->since_ns += shift_ns;
    cutter->until_ns += shift_ns;
    cutter->is_torn = !comes_again;
}
