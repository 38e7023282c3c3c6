/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/byte-rate.h"

#include "util/clock.h"
#include "util/macro.h"

/*
 * A token bucket that fills with time. One batch may overdraw it, so that a batch larger than one
 * second's worth passes now and then instead of never.
 */

/* Keeps the sums below far from overflow. */
static const uint64_t limit_max = 1ULL << 42;

void byte_rate_set(ByteRate *rate, uint64_t limit, uint64_t now_ns) {
    rate->limit = MIN(limit, limit_max);
    rate->left = (int64_t)rate->limit;
    rate->filled_ns = now_ns;
}

bool byte_rate_pass(ByteRate *rate, uint64_t bytes, uint64_t now_ns) {
    uint64_t passed_ns = now_ns > rate->filled_ns ? now_ns - rate->filled_ns : 0;
    unsigned __int128 filled = (unsigned __int128)rate->limit * passed_ns / NS_PER_SECOND;
    uint64_t room;

    if (rate->limit == 0)
        return true;
    room = (uint64_t)((int64_t)rate->limit - rate->left);
    if (filled >= room) {
        rate->left = (int64_t)rate->limit;
        rate->filled_ns = MAX(now_ns, rate->filled_ns);
    } else {
        /* Carry the remaining fraction of a byte over to the next call. */
        rate->left += (int64_t)filled;
        rate->filled_ns += (uint64_t)(filled * NS_PER_SECOND / rate->limit);
    }
    if (rate->left <= 0)
        return false;
    rate->left -= (int64_t)MIN(bytes, limit_max);
    return true;
}
