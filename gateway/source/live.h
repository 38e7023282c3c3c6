/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The thread that follows a session and cuts what it records into intervals. */

#include "interval/interval.h"
#include "source/cutter.h"
#include "source/namer.h"
#include "source/source-link.h"

/* So many complete intervals wait for the main thread at most; later ones are skipped. */
enum { LIVE_WAITING_MAX = 2 };

typedef struct Live Live;

typedef struct LiveOptions {
    const char *socket, *session; /* NULL: the default ones; borrowed */
    uint64_t interval_ns;
    Namer *namer;
    EdgeClock *clock;
    int wake_fd; /* an eventfd: an interval is complete */
} LiveOptions;

typedef struct LiveStatus {
    bool connected;
    char problem[SOURCE_PROBLEM_MAX];
    uint64_t until_ns, intervals, samples, lost, gaps, missing_ns, connections, skipped;
    uint64_t active_ns; /* when it connected or handed an interval over; CLOCK_MONOTONIC */
} LiveStatus;

int live_new(const LiveOptions *options, Live **ret);
/* Ends the thread. Accepts NULL. False: it hangs, and everything that the options have must stay
 * allocated. */
bool live_end(Live *live);
int live_start(Live *live);
/* The next complete interval, whose reference is the caller's; NULL: there is none. */
Interval *live_take(Live *live);
void live_status(Live *live, LiveStatus *ret);
/* Whether intervals should have been complete long ago. */
bool live_hangs(const LiveStatus *status, uint64_t interval_ns, uint64_t monotonic_ns);
