/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "transport/retry.h"

#include <string.h>

#include "util/macro.h"

/*
 * The rules of sending again, without any state. Waits are spread over the whole span from nearly
 * nothing to the limit ("full jitter"), so that ten thousand hosts whose engine comes back do not
 * come at the same moment, neither after a wait of their own nor after one that the engine asked
 * for.
 */

/* The least that is waited: an engine that refuses at once costs no busy loop. */
#define RETRY_MIN_NS UINT64_C(100000000)
/* A new token or a new URL comes from people. */
#define RETRY_SLOW_NS UINT64_C(30000000000)

/* Go's HTTP server says this of a body above its limit, and the Collector answers 400 with it. */
static bool retry_is_size_refused(const TransportAnswer *answer) {
    return answer->status == 400 && strstr(answer->body, "request body too large");
}

SendVerdict send_verdict(const TransportAnswer *answer) {
    long status = answer->status;

    if (answer->error != 0 || status < 200 || status >= 500 || status == 408 || status == 425)
        return SEND_AGAIN;
    if (status < 300)
        return SEND_ACCEPTED;
    if (status < 400 || status == 401 || status == 403 || status == 407)
        return SEND_UNAUTHORISED;
    if (status == SEND_STATUS_TOO_LARGE || retry_is_size_refused(answer))
        return SEND_TOO_LARGE;
    return status == 429 ? SEND_BUSY : SEND_REFUSED;
}

/* Of the errors of a server, those that come from something between us and the engine, or from
 * deep inside of it. */
bool send_may_have_arrived(const TransportAnswer *answer) {
    if (answer->error != 0)
        return answer->sent_bytes > 0;
    return answer->status < 200 || answer->status == 500 || answer->status == 502 ||
           answer->status == 504;
}

/* `random` scaled to 0 <= x < limit. */
static uint64_t retry_scale(uint64_t random, uint64_t limit) {
    return (uint64_t)((unsigned __int128)random * limit >> 64);
}

uint64_t retry_delay_ns(unsigned failures, SendVerdict verdict, uint64_t retry_after_ns,
                        uint64_t interval_ns, uint64_t random) {
    uint64_t limit = verdict == SEND_UNAUTHORISED ? RETRY_SLOW_NS : RETRY_FIRST_NS, delay;
    uint64_t most = verdict == SEND_AGAIN ? MIN(interval_ns, RETRY_MAX_NS) : RETRY_MAX_NS;

    for (unsigned i = 1; i < failures && limit < most; i++)
        limit *= 2;
    limit = MIN(limit, most);
    delay = MAX(retry_scale(random, limit), RETRY_MIN_NS);
    retry_after_ns = MIN(retry_after_ns, RETRY_AFTER_MAX_NS);
    if (retry_after_ns > 0)
        delay = MAX(delay, retry_after_ns + retry_scale(random, retry_after_ns / 10));
    return delay;
}
