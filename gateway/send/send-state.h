/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a destination remembers over restarts, and its text. */

#include "send/range-list.h"
#include "util/buffer.h"

enum { STATE_PARTIALS_MAX = 4 };

typedef struct SendCounters {
    uint64_t sent_intervals, sent_requests, sent_bytes, sent_samples;
    uint64_t refused_intervals, refused_samples;
    uint64_t dropped_samples, other_samples;
    uint64_t thinned_intervals;
    uint64_t expired_ns, missing_ns, deleted_ns;
    uint64_t repeated_requests, retries;
} SendCounters;

/* Of this span the first series were sent, in requests of their own. */
typedef struct SendPartial {
    Range range;
    uint64_t n;    /* so many series */
    uint64_t hash; /* of their labels: other labels mean other series; 0: all are sent anew */
} SendPartial;

typedef struct SendState {
    uint64_t live_ns; /* what is older was sent, refused, or is in `unsent`; 0: nothing yet */
    uint64_t
        high_ns; /* the newest end that `live_ns` ever had; it is less while a clock is behind */
    RangeList unsent; /* also what is in flight */
    SendPartial partials[STATE_PARTIALS_MAX];
    size_t n_partials;
    uint64_t last_success_ns;
    SendCounters counters;
} SendState;

/* -EBADMSG with a sentence part in *ret_problem, which is static: it is not what we wrote. */
int send_state_parse(Bytes text, SendState *ret, const char **ret_problem);
int send_state_print(const SendState *state, Buffer *out);

/* Remembers how far an interval is, instead of what was remembered of it; of too many the oldest is
 * forgotten, and is sent from its beginning. */
void send_state_put_partial(SendState *state, const SendPartial *partial);
/* Times of the range came again: what was sent of an interval of them is not all of it. */
void send_state_begin_anew(SendState *state, Range range);
/* Removes a span that is done from all lists. Counts what gets lost for lack of space. */
void send_state_settle(SendState *state, Range range);
/* NULL: nothing of exactly this span was sent. */
const SendPartial *send_state_partial(const SendState *state, Range range);
