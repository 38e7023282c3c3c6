/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The same moment on several clocks, and what two such moments show. */

#include <stdbool.h>
#include <stdint.h>

/* In nanoseconds. Samples use CLOCK_MONOTONIC; CLOCK_BOOTTIME also counts suspend. */
typedef struct ClockAnchor {
    uint64_t monotonic_ns, real_ns, boot_ns;
} ClockAnchor;

/* Open segments end when a clock steps by more than this. */
#define CLOCK_STEP_NS 10000000ULL

ClockAnchor clock_anchor_now(void);
/* How long the machine had slept since it booted; UINT64_MAX: unknown, the anchor lacks boot_ns. */
uint64_t clock_anchor_slept_ns(const ClockAnchor *anchor);
/* Whether one clock moved against another by more than `ns` between the two anchors: the wall clock
 * was set, or the machine was suspended. */
bool clock_anchor_moved(const ClockAnchor *from, const ClockAnchor *to, uint64_t ns);
/* Whether the kernel considers the wall clock synchronised (adjtimex()); false if unknown. */
bool clock_is_synchronised(void);
