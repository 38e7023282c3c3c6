/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/source.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "source/live.h"
#include "source/past.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Both threads as their users see them: everything that is called here, and every callback, is on
 * the thread of the loop. The threads leave what they have made where they found room, and write to
 * one eventfd; the loop then takes it.
 */

/* Profiles that end later than this are asked for too early. */
#define FUTURE_NS NS_PER_SECOND

struct SourceJob {
    LIST_ENTRY(SourceJob) entry;
    Source *source;
    PastJob *past;
    SourceDone done;
    void *userdata;
};

struct Source {
    SourceOptions options;
    Namer *namer;
    Live *live;
    Past *past;
    EdgeClock clock;
    int wake_fd;
    LoopSource *wake;
    LIST_HEAD(, SourceJob) jobs;
};

bool source_end(Source *source) {
    SourceJob *job;
    bool has_ended;

    if (!source)
        return true;
    source->wake = loop_source_free(source->wake);
    has_ended = live_end(source->live);
    has_ended = past_end(source->past) && has_ended;
    if (!has_ended) {
        log_warning(0, "A thread that reads from profd hangs, and is left behind");
        return false;
    }
    while ((job = LIST_FIRST(&source->jobs))) {
        LIST_REMOVE(job, entry);
        free(job);
    }
    namer_free(source->namer);
    if (source->wake_fd >= 0)
        (void)close(source->wake_fd);
    free(source);
    return true;
}

Source *source_free(Source *source) {
    (void)source_end(source);
    return NULL;
}

/* At most one window, so that a live interval never waits for several of them. */
static void source_take_window(Source *source) {
    Interval *interval;
    void *owner;
    int error;
    SourceJob *job;

    if (!past_take(source->past, &owner, &error, &interval))
        return;
    job = owner;
    LIST_REMOVE(job, entry);
    job->done(job->userdata, error, interval);
    free(job);
    interval_unref(interval);
}

static int source_on_wake(void *userdata) {
    Source *source = userdata;
    Interval *interval;
    uint64_t count;

    if (read(source->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        return -errno;
    while ((interval = live_take(source->live))) {
        source->options.on_interval(source->options.userdata, interval);
        interval_unref(interval);
    }
    source_take_window(source);
    return 0;
}

static int source_init(Source *source) {
    const SourceOptions *o = &source->options;
    int r = namer_new(
        &(NamerOptions){.root = "", .cache_folder = o->cache_folder, .inlines = o->inlines},
        &source->namer);

    if (r < 0)
        return r;
    source->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->wake_fd < 0)
        return -errno;
    r = live_new(&(LiveOptions){.socket = o->socket,
                                .session = o->session,
                                .interval_ns = o->interval_ns,
                                .namer = source->namer,
                                .clock = &source->clock,
                                .wake_fd = source->wake_fd},
                 &source->live);
    if (r == 0)
        r = past_new(&(PastOptions){.socket = o->socket,
                                    .session = o->session,
                                    .namer = source->namer,
                                    .clock = &source->clock,
                                    .wake_fd = source->wake_fd},
                     &source->past);
    return r < 0
               ? r
               : loop_add_readable(o->loop, source->wake_fd, source_on_wake, source, &source->wake);
}

int source_new(const SourceOptions *options, Source **ret) {
    Source *source = calloc(1, sizeof(*source));
    int r;

    if (!source)
        return -ENOMEM;
    source->options = *options;
    source->wake_fd = -1;
    LIST_INIT(&source->jobs);
    r = source_init(source);
    if (r == 0)
        r = past_start(source->past);
    if (r < 0) {
        source_free(source);
        return r;
    }
    *ret = source;
    return 0;
}

int source_start(Source *source) {
    return live_start(source->live);
}

static void source_note_hang(SourceStatus *status, uint64_t since_ns) {
    status->connected = false;
    status->hangs = true;
    (void)snprintf(status->problem, sizeof(status->problem),
                   "Reading from profd hangs for %" PRIu64
                   " s: perhaps a file of a sampled program "
                   "is on a file system that does not answer.",
                   (uint64_t)((clock_monotonic_ns() - since_ns) / NS_PER_SECOND));
}

void source_status(Source *source, SourceStatus *ret) {
    LiveStatus live;

    live_status(source->live, &live);
    *ret = (SourceStatus){.connected = live.connected,
                          .until_ns = live.until_ns,
                          .intervals = live.intervals,
                          .samples = live.samples,
                          .lost = live.lost,
                          .gaps = live.gaps,
                          .missing_ns = live.missing_ns,
                          .connections = live.connections,
                          .skipped = live.skipped,
                          .queued_windows = past_count(source->past)};
    static_assert(sizeof(ret->problem) == sizeof(live.problem), "one copy holds it");
    memcpy(ret->problem, live.problem, sizeof(ret->problem));
    if (live_hangs(&live, source->options.interval_ns, clock_monotonic_ns()))
        source_note_hang(ret, live.active_ns);
}

int source_window(Source *source, const SourceWindow *window, SourceDone done, void *userdata,
                  SourceJob **ret) {
    SourceJob *job;
    int r;

    if (window->since_ns / NS_PER_US >= window->until_ns / NS_PER_US ||
        window->until_ns > clock_ns(CLOCK_REALTIME) + FUTURE_NS)
        return -EINVAL;
    job = calloc(1, sizeof(*job));
    if (!job)
        return -ENOMEM;
    *job = (SourceJob){.source = source, .done = done, .userdata = userdata};
    r = past_add(source->past,
                 &(PastWindow){.since_ns = window->since_ns,
                               .until_ns = window->until_ns,
                               .selection = window->selection,
                               .is_urgent = window->is_urgent},
                 job, &job->past);
    if (r < 0) {
        free(job);
        return r;
    }
    LIST_INSERT_HEAD(&source->jobs, job, entry);
    *ret = job;
    return 0;
}

SourceJob *source_job_cancel(SourceJob *job) {
    if (!job)
        return NULL;
    past_cancel(job->source->past, job->past);
    LIST_REMOVE(job, entry);
    free(job);
    return NULL;
}
