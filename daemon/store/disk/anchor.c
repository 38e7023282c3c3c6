/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/anchor.h"

#include <sys/timex.h>
#include <time.h>

#include "util/clock.h"

/*
 * The clocks are read one after another, which takes time. The quickest of a few tries counts, so
 * that an interrupt in between does not look like a clock step.
 */

enum { TRIES = 3 };

ClockAnchor clock_anchor_now(void) {
    uint64_t least = UINT64_MAX;
    ClockAnchor best = {};

    for (unsigned i = 0; i < TRIES; i++) {
        uint64_t before = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME),
                 boot = clock_ns(CLOCK_BOOTTIME), took = clock_ns(CLOCK_MONOTONIC) - before;

        if (took >= least)
            continue;
        least = took;
        best = (ClockAnchor){.monotonic_ns = before + took / 2, .real_ns = real, .boot_ns = boot};
    }
    return best;
}

uint64_t clock_anchor_slept_ns(const ClockAnchor *anchor) {
    if (anchor->boot_ns == 0)
        return UINT64_MAX;
    return anchor->boot_ns > anchor->monotonic_ns ? anchor->boot_ns - anchor->monotonic_ns : 0;
}

static bool anchor_apart(uint64_t a, uint64_t b, uint64_t ns) {
    /* Differences are modulo 2^64, because either clock may be ahead. */
    int64_t d = (int64_t)(a - b);

    return d > 0 ? (uint64_t)d > ns : 0 - (uint64_t)d > ns;
}

bool clock_anchor_moved(const ClockAnchor *from, const ClockAnchor *to, uint64_t ns) {
    return anchor_apart(to->real_ns - to->monotonic_ns, from->real_ns - from->monotonic_ns, ns) ||
           anchor_apart(to->boot_ns - to->monotonic_ns, from->boot_ns - from->monotonic_ns, ns);
}

bool clock_is_synchronised(void) {
    struct timex t = {};

    return adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);
}
