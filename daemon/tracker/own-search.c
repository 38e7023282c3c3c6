/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/own-search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/*
 * Processes are listed every three seconds, less often if listing takes long. A list waits for a
 * sweep, because only then it is known which processes were forked by followed ones. After the
 * first list all of /proc is read, as it is at start when whole CPUs are recorded: side-band runs
 * by then, so no change is missed. A process that is found later is read alone. Samples of a
 * process begin when it was read: those of one that ends before would have no name.
 */

#define PERIOD_NS     (3 * NS_PER_SECOND)
#define PERIOD_MAX_NS (60 * NS_PER_SECOND)
enum { SHARE = 200 /* of the time, for listing */ };

struct Own {
    Loop *loop;
    Sampler *sampler;
    Tracker *tracker;
    LoopSource *timer;
    bool is_waiting, has_passed;
    uint64_t seen_ns, took_ns;
    uint32_t *pids;
    uint64_t *starts_ns;
    size_t n;
};

static int own_search_on_due(void *userdata) {
    return tracker_list(((Own *)userdata)->tracker);
}

/* A new session has to follow all running processes. */
static int own_search_on_wanted(void *userdata) {
    return loop_trigger(((Own *)userdata)->timer);
}

int own_new(Loop *loop, Sampler *sampler, Tracker *tracker, Own **ret) {
    _cleanup_(own_freep) Own *own = calloc(1, sizeof(*own));
    int r;

    if (!own)
        return -ENOMEM;
    *own = (Own){.loop = loop, .sampler = sampler, .tracker = tracker};
    r = loop_add_deferred(loop, own_search_on_due, own, &own->timer);
    if (r < 0)
        return r;
    sampler_watch_follow(sampler, own_search_on_wanted, own);
    *ret = TAKE_PTR(own);
    return 0;
}

static void own_search_clear(Own *own) {
    free(own->pids);
    free(own->starts_ns);
    own->pids = NULL;
    own->starts_ns = NULL;
    own->n = 0;
    own->is_waiting = false;
}

Own *own_free(Own *own) {
    if (!own)
        return NULL;
    own_search_clear(own);
    sampler_watch_follow(own->sampler, NULL, NULL);
    loop_source_free(own->timer);
    free(own);
    return NULL;
}

int own_on_listing(Own *own, const ScannerListing *listing) {
    own_search_clear(own);
    own->pids = calloc(listing->n + 1, sizeof(*own->pids));
    own->starts_ns = calloc(listing->n + 1, sizeof(*own->starts_ns));
    if (!own->pids || !own->starts_ns)
        return -ENOMEM;
    memcpy(own->pids, listing->pids, listing->n * sizeof(*own->pids));
    memcpy(own->starts_ns, listing->starts_ns, listing->n * sizeof(*own->starts_ns));
    own->n = listing->n;
    own->seen_ns = clock_monotonic_ns();
    own->took_ns = own->seen_ns - listing->begin_ns;
    own->is_waiting = true;
    return 0;
}

static uint64_t own_search_born_ns(void *userdata, uint32_t pid, uint32_t *ret_ppid) {
    Own *own = userdata;

    return history_birth(tracker_history(own->tracker), pid, ret_ppid);
}

static int own_search_on_joined(void *userdata, uint32_t pid) {
    Own *own = userdata;

    return own->has_passed ? tracker_read(own->tracker, pid) : 0;
}

int own_complete(Own *own, uint64_t start_ns) {
    SamplerLook look = {.pids = own->pids,
                        .starts_ns = own->starts_ns,
                        .n = own->n,
                        .born_ns = own_search_born_ns,
                        .on_joined = own_search_on_joined,
                        .userdata = own};
    uint64_t pause_ns = MIN(own->took_ns * SHARE, PERIOD_MAX_NS);
    int r;

    if (!own->is_waiting || start_ns < own->seen_ns)
        return 0;
    r = sampler_follow(own->sampler, &look);
    own_search_clear(own);
    if (r == 0 && !own->has_passed) {
        own->has_passed = true;
        r = tracker_pass(own->tracker);
    }
    return r < 0 ? r : loop_trigger_after(own->timer, MAX(PERIOD_NS, pause_ns));
}
