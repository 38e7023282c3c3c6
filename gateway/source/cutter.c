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
    uint64_t forward = real_offset - cutter->real_offset,
             backward = cutter->real_offset - real_offset;

    if (MIN(forward, backward) >= CLOCK_STEP_NS)
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
