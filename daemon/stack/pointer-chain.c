/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/pointer-chain.h"

#include "perfdata/record/sample-chain.h"
#include "util/macro.h"

/*
 * The two chains are of one moment. The kernel's chain has our last frame where both have the same
 * addresses from there inwards: in all of ours, or in two frames at least, since a frame that has
 * no frame pointer is missing in the kernel's. A function that calls itself has its address in the
 * chain many times, so the longest such piece counts.
 */

enum { MEETING_MIN = 2 };

/* How many frames of ours, from the last one inwards, are in the kernel's chain up to `at`. */
static unsigned pointer_chain_common(const PdCallchain *by_pointer, uint64_t first, uint64_t at,
                                     const UnwindChain *ours) {
    unsigned n = 0;

    while (n < ours->n && at - first >= n &&
           pd_u64_at(by_pointer, at - n) == ours->addresses[ours->n - 1 - n])
        n++;
    return n;
}

uint64_t pointer_chain_rest(const PdCallchain *by_pointer, const UnwindChain *ours) {
    uint64_t first = pd_chain_before_user(by_pointer) + 1, rest = by_pointer->n;
    unsigned most = 0;

    for (uint64_t at = first; at < by_pointer->n; at++) {
        unsigned n = pointer_chain_common(by_pointer, first, at, ours);

        if (n <= most || n < MIN(ours->n, (unsigned)MEETING_MIN))
            continue;
        most = n;
        rest = at + 1;
    }
    return rest;
}
