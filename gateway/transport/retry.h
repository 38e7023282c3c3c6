/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an answer of an engine means, and how long to wait after one that is not the last word. */

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

#define RETRY_FIRST_NS     UINT64_C(1000000000)
#define RETRY_MAX_NS       UINT64_C(300000000000)
#define RETRY_AFTER_MAX_NS UINT64_C(3600000000000)

enum {
    SEND_STATUS_TOO_LARGE = 413,
    SEND_STATUS_LOCAL = -1,  /* no request could be made; it is tried again */
    SEND_STATUS_SOURCE = -3, /* profd did not give a window; it is asked again */
    SEND_STATUS_LOST = -2,   /* nothing was asked of an engine, and nothing helps any more */
};

typedef enum SendVerdict {
    SEND_ACCEPTED,
    SEND_AGAIN,        /* no answer, or the engine cannot now */
    SEND_BUSY,         /* the engine wants fewer requests (429) */
    SEND_UNAUTHORISED, /* or redirected: somebody has to change something, then it works */
    SEND_TOO_LARGE,    /* a smaller request may do */
    SEND_REFUSED,      /* for good: the same would be refused again */
} SendVerdict;

SendVerdict send_verdict(const TransportAnswer *answer);
/* Whether the engine may have taken a request that will be sent again. */
bool send_may_have_arrived(const TransportAnswer *answer);

/* The wait after so many failures in a row, at least 1: a random part of a time that doubles, from
 * `random`, any 64 bits; never less than the engine asked for. An engine that does not answer is
 * tried once in each interval, which is no more than what live intervals ask of it: so they are not
 * late when it is back. */
uint64_t retry_delay_ns(unsigned failures, SendVerdict verdict, uint64_t retry_after_ns,
                        uint64_t interval_ns, uint64_t random);
