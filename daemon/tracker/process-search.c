/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tracker/process-search.h"

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

struct ProcessSearch {
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

static int process_search_on_due(void *userdata) {
    return tracker_list(((ProcessSearch *)userdata)->tracker);
}

/* A new session has to follow all running processes. */
static int process_search_on_wanted(void *userdata) {
    return loop_trigger(((ProcessSearch *)userdata)->timer);
}

int process_search_new(Loop *loop, Sampler *sampler, Tracker *tracker, ProcessSearch **ret) {
    _cleanup_(process_search_freep) ProcessSearch *search = calloc(1, sizeof(*search));
    int r;

    if (!search)
        return -ENOMEM;
    *search = (ProcessSearch){.loop = loop, .sampler = sampler, .tracker = tracker};
    r = loop_add_deferred(loop, process_search_on_due, search, &search->timer);
    if (r < 0)
        return r;
    sampler_watch_follow(sampler, process_search_on_wanted, search);
    *ret = TAKE_PTR(search);
    return 0;
}

static void process_search_clear(ProcessSearch *search) {
    free(search->pids);
    free(search->starts_ns);
    search->pids = NULL;
    search->starts_ns = NULL;
    search->n = 0;
    search->is_waiting = false;
}

ProcessSearch *process_search_free(ProcessSearch *search) {
    if (!search)
        return NULL;
    process_search_clear(search);
    sampler_watch_follow(search->sampler, NULL, NULL);
    loop_source_free(search->timer);
    free(search);
    return NULL;
}

int process_search_on_listing(ProcessSearch *search, const ScannerListing *listing) {
    process_search_clear(search);
    search->pids = calloc(listing->n + 1, sizeof(*search->pids));
    search->starts_ns = calloc(listing->n + 1, sizeof(*search->starts_ns));
    if (!search->pids || !search->starts_ns)
        return -ENOMEM;
    memcpy(search->pids, listing->pids, listing->n * sizeof(*search->pids));
    memcpy(search->starts_ns, listing->starts_ns, listing->n * sizeof(*search->starts_ns));
    search->n = listing->n;
    search->seen_ns = clock_monotonic_ns();
    search->took_ns = search->seen_ns - listing->begin_ns;
    search->is_waiting = true;
    return 0;
}

static uint64_t process_search_forked_ns(void *userdata, uint32_t pid, uint32_t *ret_ppid) {
    ProcessSearch *search = userdata;

    return history_birth(tracker_history(search->tracker), pid, ret_ppid);
}

static int process_search_on_followed(void *userdata, uint32_t pid) {
    ProcessSearch *search = userdata;

    return search->has_passed ? tracker_read(search->tracker, pid) : 0;
}

int process_search_complete(ProcessSearch *search, uint64_t start_ns) {
    SamplerProcesses running = {.pids = search->pids,
                                .starts_ns = search->starts_ns,
                                .n = search->n,
                                .forked_ns = process_search_forked_ns,
                                .on_followed = process_search_on_followed,
                                .userdata = search};
    uint64_t pause_ns = MIN(search->took_ns * SHARE, PERIOD_MAX_NS);
    int r;

    if (!search->is_waiting || start_ns < search->seen_ns)
        return 0;
    r = sampler_follow(search->sampler, &running);
    process_search_clear(search);
    if (r == 0 && !search->has_passed) {
        search->has_passed = true;
        r = tracker_pass(search->tracker);
    }
    return r < 0 ? r : loop_trigger_after(search->timer, MAX(PERIOD_NS, pause_ns));
}
