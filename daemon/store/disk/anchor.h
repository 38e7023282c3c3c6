/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The same moment by several clocks, and what may be concluded from two such moments. */

#include <stdbool.h>
#include <stdint.h>

/* In nanoseconds. CLOCK_MONOTONIC is the clock of samples, CLOCK_BOOTTIME runs on through suspend.
 */
typedef struct ClockAnchor {
    uint64_t monotonic_ns, real_ns, boot_ns;
} ClockAnchor;

/* A clock that moves by more ends the segments that are open. */
#define CLOCK_STEP_NS 10000000ULL

ClockAnchor clock_anchor_now(void);
/* Whether one clock moved against another by more than `ns` between the two: the time of day was
 * set, or the machine slept. */
bool clock_anchor_moved(const ClockAnchor *from, const ClockAnchor *to, uint64_t ns);
/* Whether the kernel holds the time of day for right (adjtimex()); false if it is not known. */
bool clock_is_synchronised(void);
