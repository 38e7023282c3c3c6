/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stack/stack-share.h"

#include "util/macro.h"

/*
 * A few stacks are cut on every host: deep recursion, programs that have just started. Only when
 * that goes on and concerns many samples is it worth a user's attention, so sums of minutes are
 * kept, old ones are overwritten, and a minute counts when it has ended.
 */

#define NS_PER_MINUTE 60000000000ULL

void stack_share_add(StackShare *share, uint64_t now_ns, uint64_t whole, uint64_t all) {
    uint64_t minute = now_ns / NS_PER_MINUTE;
    typeof(&share->minutes[0]) sum = &share->minutes[minute % ARRAY_SIZE(share->minutes)];

    if (sum->minute != minute) {
        sum->minute = minute;
        sum->whole = sum->all = 0;
    }
    sum->whole += whole;
    sum->all += all;
}

bool stack_share_is_short(const StackShare *share, uint64_t now_ns) {
    uint64_t minute = now_ns / NS_PER_MINUTE, whole = 0, all = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(share->minutes); i++) {
        uint64_t at = share->minutes[i].minute;

        if (at == minute || at + STACK_SHARE_MINUTES < minute)
            continue;
        whole += share->minutes[i].whole;
        all += share->minutes[i].all;
    }
    return all >= STACK_SHARE_LEAST && whole * 5 < all * 4;
}
