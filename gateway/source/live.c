/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/live.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/profile-builder.h"
#include "source/cutter.h"
#include "source/interval-gap.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/thread.h"

/*
 * One builder keeps the state of processes, and hands a profile over at each cut. If the stream
 * ends, it is continued at its last watermark, so that an interval is whole even if profd was
 * restarted. If it cannot be continued, or lies too far behind, the collected samples are dropped
 * and the running interval begins anew. Nothing is lost: destinations read a missing interval as a
 * window.
 *
 * The main thread takes intervals when it likes. While it does not, no more than a few wait.
 */

enum { STACKS_MAX = 512 << 10, PAUSE_FIRST_MS = 250, PAUSE_MAX_MS = 8000, BEHIND_MAX = 6 };

/* How often within an interval profd tells what is new: by so much later its end is known. */
enum { LOOKS = 4 };

/* How long its end is waited for: longer than it waits for a connection, twice. */
enum { LIVE_END_S = 12 };

#define BEHIND_MIN_NS (60 * NS_PER_SECOND)
/* How long a complete interval waits for the main thread to take those before it. */
#define ROOM_NS (2 * NS_PER_SECOND)
/* Without a new interval for HANG_INTERVALS of them and this time, it hangs: files of sampled
 * programs are opened here, and a file server may not answer. */
#define HANG_NS        (30 * NS_PER_SECOND)
#define HANG_INTERVALS 3

struct Live {
    LiveOptions options;
    SourceLink link;
    pthread_t thread;
    bool is_running;

    /* Of the thread alone. */
    Follow *follow;
    ProfileBuilder *builder;
    Cutter cutter;
    IntervalGaps gaps;
    IntervalSleep sleeps[INTERVAL_SLEEPS_MAX]; /* since the last interval that was handed over */
    size_t n_sleeps;
    unsigned pause_ms;

    /* Of both, under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* it must stop, or an interval was taken */
    bool stop;
    Interval *waiting[LIVE_WAITING_MAX];
    size_t n_waiting;
    LiveStatus status;
};

int live_new(const LiveOptions *options, Live **ret) {
    Live *live = calloc(1, sizeof(*live));

    if (!live)
        return -ENOMEM;
    live->options = *options;
    live->pause_ms = PAUSE_FIRST_MS;
    source_link_init(&live->link, options->socket);
    (void)pthread_mutex_init(&live->lock, NULL);
    thread_condition_init(&live->changed);
    *ret = live;
    return 0;
}

static bool live_must_stop(Live *live) {
    bool stop;

    (void)pthread_mutex_lock(&live->lock);
    stop = live->stop;
    (void)pthread_mutex_unlock(&live->lock);
    return stop;
}

/* Waits before it connects again, each time twice as long, until it is stopped. */
static void live_pause(Live *live) {
    struct timespec end = clock_timespec(clock_monotonic_ns() + live->pause_ms * NS_PER_MS);
    int r = 0;

    live->pause_ms = MIN(live->pause_ms * 2, (unsigned)PAUSE_MAX_MS);
    (void)pthread_mutex_lock(&live->lock);
    while (!live->stop && r == 0)
        r = pthread_cond_timedwait(&live->changed, &live->lock, &end);
    (void)pthread_mutex_unlock(&live->lock);
}

static void live_set_problem(Live *live, const char *problem) {
    (void)pthread_mutex_lock(&live->lock);
    live->status.connected = !*problem;
    live->status.connections += !*problem;
    live->status.active_ns = clock_monotonic_ns();
    snprintf(live->status.problem, sizeof(live->status.problem), "%s", problem);
    (void)pthread_mutex_unlock(&live->lock);
}

/* -- cutting --------------------------------------------------------------------------------- */

/* Waits for room for one more; the caller holds the lock. */
static void live_wait_for_room(Live *live) {
    struct timespec end = clock_timespec(clock_monotonic_ns() + ROOM_NS);
    int r = 0;

    while (!live->stop && live->n_waiting == LIVE_WAITING_MAX && r == 0)
        r = pthread_cond_timedwait(&live->changed, &live->lock, &end);
}

/* Hands an interval over, or drops it where nobody takes them. Takes the interval over. */
static void live_hand_over(Live *live, Interval *interval) {
    static const uint64_t one = 1;

    (void)pthread_mutex_lock(&live->lock);
    live_wait_for_room(live);
    live->status.until_ns = interval->until_ns;
    live->status.active_ns = clock_monotonic_ns();
    live->status.intervals++;
    live->status.samples += interval->profile->samples;
    live->status.lost += interval->profile->lost;
    live->status.missing_ns += interval->missing_ns;
    if (live->n_waiting < LIVE_WAITING_MAX) {
        live->waiting[live->n_waiting++] = TAKE_PTR(interval);
        (void)file_write_all(live->options.wake_fd, &one, sizeof(one));
    } else {
        live->status.skipped++;
    }
    (void)pthread_mutex_unlock(&live->lock);
    interval_unref(interval);
}

Interval *live_take(Live *live) {
    Interval *interval = NULL;

    (void)pthread_mutex_lock(&live->lock);
    if (live->n_waiting > 0) {
        interval = live->waiting[0];
        live->n_waiting--;
        memmove(live->waiting, live->waiting + 1, live->n_waiting * sizeof(*live->waiting));
        (void)pthread_cond_signal(&live->changed);
    }
    (void)pthread_mutex_unlock(&live->lock);
    return interval;
}

/* Ends the running interval, which is handed over unless it is torn. The caller goes on with the
 * next one. */
static int live_cut(Live *live) {
    const Cutter *cutter = &live->cutter;
    Interval *interval;
    Profile *profile;
    IntervalMissing missing = {};
    int r = profile_builder_take(live->builder, &profile);

    if (r < 0)
        return r;
    profile->real_offset = cutter->real_offset;
    profile->real_known = true;
    r = interval_gaps_take(&live->gaps, cutter->since_ns, cutter->until_ns, &missing);
    if (r == 0 && cutter->is_torn) {
        profile_free(profile);
        return 0;
    }
    if (r == 0)
        r = namer_make(live->options.namer, profile, cutter->since_ns, cutter->until_ns, &interval);
    else
        profile_free(profile);
    if (r < 0)
        return r;
    interval->missing_ns = missing.all_ns;
    interval->deleted_ns = missing.deleted_ns;
    memcpy(interval->sleeps, live->sleeps, sizeof(interval->sleeps));
    interval->n_sleeps = live->n_sleeps;
    live->n_sleeps = 0;
    live_hand_over(live, interval);
    return 0;
}

static int live_take_record(Live *live, const FollowItem *item) {
    bool is_sample = item->record.type == PD_RECORD_SAMPLE && item->stamp.has_time;
    int r = 0;

    while (is_sample && r == 0 && cutter_is_behind(&live->cutter, item->stamp.time)) {
        r = live_cut(live);
        cutter_advance(&live->cutter, item->stamp.time);
    }
    return r < 0 ? r : profile_builder_feed(live->builder, &item->record, &item->stamp);
}

static int live_take_mark(Live *live, const FollowItem *item) {
    const PdStreamMark *mark = &item->mark;
    uint64_t real_offset = edge_clock_adopt(live->options.clock, mark->real_offset);
    int r = profile_builder_feed(live->builder, &item->record, &item->stamp);

    live->pause_ms = PAUSE_FIRST_MS;
    if (r == 0 && cutter_mark(&live->cutter, mark->time, real_offset)) {
        if (cutter_comes_again(&live->cutter, mark->time, real_offset))
            r = live_cut(live);
        cutter_restart(&live->cutter, mark->time, real_offset);
    }
    while (r == 0 && cutter_is_complete(&live->cutter)) {
        r = live_cut(live);
        cutter_advance(&live->cutter, live->cutter.marks[0]);
    }
    return r;
}

/* A sleep tears the running interval, and the next one that is whole reports it. */
static void live_note_sleep(Live *live, const PdStreamMark *mark) {
    if (mark->gap.reason == PD_GAP_ASLEEP && live->n_sleeps < INTERVAL_SLEEPS_MAX)
        live->sleeps[live->n_sleeps++] =
            (IntervalSleep){.since_ns = mark->gap.from_ns + mark->real_offset,
                            .until_ns = mark->gap.to_ns + mark->real_offset};
}

static int live_take_gap(Live *live, const FollowItem *item) {
    live_note_sleep(live, &item->mark);
    (void)pthread_mutex_lock(&live->lock);
    live->status.gaps += pd_gap_counts(&item->mark.gap);
    (void)pthread_mutex_unlock(&live->lock);
    return interval_gaps_add(&live->gaps, &item->mark);
}

/* 0 at the end of the stream, or a negative errno. */
static int live_read(Live *live) {
    FollowItem item;
    int r = 0;

    while (r == 0 && !live_must_stop(live)) {
        r = follow_next(live->follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            return r;
        if (item.what == FOLLOW_RECORD)
            r = live_take_record(live, &item);
        else
            r = item.what == FOLLOW_GAP ? live_take_gap(live, &item) : live_take_mark(live, &item);
    }
    return r;
}

/* -- connecting ------------------------------------------------------------------------------ */

static void live_forget(Live *live) {
    live->n_sleeps = 0;
    live->builder = profile_builder_free(live->builder);
    live->follow = follow_free(live->follow);
    interval_gaps_done(&live->gaps);
}

/* What lies so far behind is read as windows, beside what happens now. */
static bool live_is_behind(const Live *live) {
    uint64_t most_ns = MAX(BEHIND_MAX * live->options.interval_ns, BEHIND_MIN_NS);

    return clock_ns(CLOCK_REALTIME) > live->cutter.until_ns + most_ns;
}

/* Prepares for a stream that begins with the running interval. */
static int live_begin(Live *live) {
    uint64_t now_ns = clock_ns(CLOCK_REALTIME), measured = now_ns - clock_monotonic_ns();
    const ProfileOptions options = {
        .keys = INTERVAL_KEYS, .stacks_max = STACKS_MAX, .callers_in_branch = true};
    FollowOptions follow = {.session = live->options.session,
                            .every_us = live->options.interval_ns / LOOKS / NS_PER_US};
    int r;

    live_forget(live);
    cutter_begin(&live->cutter, live->options.interval_ns, now_ns,
                 edge_clock_of(live->options.clock, measured));
    follow.since_us = live->cutter.since_ns / NS_PER_US;
    r = profile_builder_new(&options, &live->builder);
    return r < 0 ? r : follow_new(&follow, &live->follow);
}

static int live_connect(Live *live) {
    char problem[SOURCE_PROBLEM_MAX] = "";
    bool continues = live->follow && follow_sent_ns(live->follow) > 0 && !live_is_behind(live);
    int r = continues ? 0 : live_begin(live);

    namer_ask(live->options.namer, &live->link, true);
    if (r == 0)
        r = source_link_follow(&live->link, live->follow, problem);
    else
        snprintf(problem, sizeof(problem), "Failed to follow profd: %s.", strerror(-r));
    live_set_problem(live, problem);
    if (r == 0) {
        cutter_resume(&live->cutter);
        r = profile_builder_begin(live->builder, follow_reader(live->follow));
    } else if (r != -ENOTCONN) {
        live_forget(live);
    }
    return r;
}

static void live_note_end(Live *live, int r) {
    char problem[SOURCE_PROBLEM_MAX];

    snprintf(problem, sizeof(problem), "profd ended the stream%s%s.", r < 0 ? ": " : "",
             r < 0 ? strerror(-r) : "");
    live_set_problem(live, problem);
    /* After any other error the profile may lack something, and is read as a window. */
    if (r < 0 && r != -ETIMEDOUT && r != -EPIPE)
        live_forget(live);
}

static void *live_run(void *userdata) {
    Live *live = userdata;

    while (!live_must_stop(live)) {
        int r = live_connect(live);

        if (r == 0)
            live_note_end(live, live_read(live));
        if (!live_must_stop(live))
            live_pause(live);
    }
    live_forget(live);
    return NULL;
}

int live_start(Live *live) {
    int r = thread_start(&(ThreadOptions){.name = "live"}, live_run, live, &live->thread);

    live->is_running = r == 0;
    return r;
}

void live_status(Live *live, LiveStatus *ret) {
    (void)pthread_mutex_lock(&live->lock);
    *ret = live->status;
    (void)pthread_mutex_unlock(&live->lock);
}

bool live_hangs(const LiveStatus *status, uint64_t interval_ns, uint64_t monotonic_ns) {
    return status->connected &&
           monotonic_ns > status->active_ns + HANG_INTERVALS * interval_ns + HANG_NS;
}

bool live_end(Live *live) {
    if (!live)
        return true;
    (void)pthread_mutex_lock(&live->lock);
    live->stop = true;
    (void)pthread_cond_signal(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
    source_link_break(&live->link);
    if (live->is_running && !thread_end(live->thread, LIVE_END_S))
        return false;
    for (size_t i = 0; i < live->n_waiting; i++)
        interval_unref(live->waiting[i]);
    source_link_done(&live->link);
    (void)pthread_cond_destroy(&live->changed);
    (void)pthread_mutex_destroy(&live->lock);
    free(live);
    return true;
}
