/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/cutter.h"

#include "util/clock.h"
#include "util/macro.h"

/*
 * Samples come in order of time, so the first one behind the end of an interval shows that all
 * samples before the end have come. On an idle host no sample comes: then the second watermark
 * after the one that passed the end shows it, because a watermark overtakes records that are still
 * put in order. Between watermarks the clocks differ by what the last one says; a difference that
 * changes by a second at once means that somebody set the clock.
 */

#define CLOCK_STEP_NS NS_PER_SECOND
/* Two measurements of one difference are closer. */
#define CLOCK_NOISE_NS NS_PER_MS

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

    cutter->since_ns = cutter->until_ns;
    if (real_ns > cutter->since_ns && real_ns - cutter->since_ns > CUTTER_JUMP * interval)
        cutter->since_ns = real_ns - real_ns % interval;
    cutter->until_ns = cutter->since_ns + interval;
}

void cutter_restart(Cutter *cutter, uint64_t monotonic_ns, uint64_t real_offset) {
    cutter_begin(cutter, cutter->interval_ns, monotonic_ns + real_offset, real_offset);
}
