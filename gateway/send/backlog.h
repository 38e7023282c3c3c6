/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which span of the past a destination reads and sends next. */

#include "send/send-state.h"

enum { BACKLOG_MERGE_MAX = 6 };

typedef struct BacklogRules {
    uint64_t interval_ns;
    uint64_t max_age_ns;    /* the engine refuses what began before; 0: it takes all */
    const char *host;       /* with the time it decides which intervals are sent */
    uint32_t share_percent; /* of them, 1 to 100 */
} BacklogRules;

typedef struct BacklogTime {
    uint64_t now_ns;  /* CLOCK_REALTIME */
    uint64_t live_ns; /* what is on its way begins here; UINT64_MAX: nothing is */
} BacklogTime;

/* Removes the unsent part of a range in which profd recorded nothing; it counts as missing. */
void backlog_forget(SendState *state, Range range);

/* Whether the interval in which this time lies is one of those that are sent. */
bool backlog_has_share(const BacklogRules *rules, uint64_t since_ns);
/* Removes from the state what is too old for the engine or beyond the share, and counts it; then
 * says what comes next: an interval whose rest is not sent yet, else up to `merge` intervals from
 * the oldest time. False: nothing of the past is left. */
bool backlog_next(SendState *state, const BacklogRules *rules, unsigned merge,
                  const BacklogTime *time, Range *ret);
/* A span joins what is not sent; what is more than BACKLOG_REACH_NS before `now_ns` is counted as
 * too old. `now_ns` is CLOCK_REALTIME. */
void backlog_add(SendState *state, Range range, uint64_t now_ns);
/* A clock that jumped by years leaves no list of empty intervals behind. */
#define BACKLOG_REACH_NS (UINT64_C(31) * 24 * 3600 * 1000000000)
