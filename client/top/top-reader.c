/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/remote-follow.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/top/top-state.h"
#include "client/view/view-resolver.h"
#include "protocol/value.h"
#include "util/clock.h"
#include "util/thread.h"

/*
 * The thread that follows profd. Samples go into a builder of its own; about once a second, at a
 * watermark, what it has goes to the world, and new frames get names. Only that happens under the
 * lock. A stream that ends is continued as soon as profd runs again.
 */

enum { RETRY_MS = 500, STOP_MS = 20 };

struct TopReader {
    Context *context;
    const TopSettings *settings;
    TopShared *shared;
    ViewRequest request;
    ViewWork work; /* its filter and its builder */
    ViewResolver *resolver;
    char *title, *binaries;
    bool is_live, is_running;
    pthread_t thread;
    uint64_t cut_ns;        /* the watermark at which the last slice was made; 0: none was */
    pthread_mutex_t stream; /* guards work.follow while it is replaced */
};

static const unsigned top_keys = 1U << PROFILE_EVENT | 1U << PROFILE_COMM | 1U << PROFILE_PID |
                                 1U << PROFILE_TID | 1U << PROFILE_CPU | 1U << PROFILE_CGROUP |
                                 1U << PROFILE_UNIT | 1U << PROFILE_CONTAINER;

const FrameFilter *top_reader_filter(const TopReader *reader) {
    return &reader->work.frames;
}

const char *top_reader_title(const TopReader *reader) {
    return reader->title ? reader->title : "";
}

bool top_reader_is_live(const TopReader *reader) {
    return reader->is_live;
}

static int top_reader_new(Context *c, const TopSettings *settings, TopShared *shared,
                          unsigned more_keys, TopReader **ret) {
    _cleanup_(top_reader_freep) TopReader *reader = calloc(1, sizeof(*reader));
    int r = reader ? 0 : -ENOMEM;

    if (reader) {
        reader->context = c;
        reader->settings = settings;
        reader->shared = shared;
        reader->request =
            (ViewRequest){.keys = top_keys | more_keys, .nameless = true, .may_be_nothing = true};
        reader->work =
            (ViewWork){.context = c, .settings = &settings->view, .request = &reader->request};
        pthread_mutex_init(&reader->stream, NULL);
        r = view_work_begin(&reader->work);
    }
    if (r == 0)
        r = top_world_init(&shared->world, top_keys, TOP_STACKS_MAX, TOP_CELLS_MAX);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to start top: %s.", strerror(-r));
    *ret = TAKE_PTR(reader);
    return STATUS_OK;
}

/* Adds a slice and names what is new in it; the caller holds the lock. */
static int top_reader_add(TopReader *reader, const Profile *slice, uint64_t complete_ns) {
    TopWorld *world = &reader->shared->world;
    int r = top_world_add(world, slice, complete_ns);

    if (r == 0 && !world->names)
        r = frame_names_new(&world->names);
    if (r == 0)
        r = view_resolver_name(reader->resolver, world->merge.into, world->names);
    reader->shared->generation++;
    return r;
}

static uint64_t top_reader_since_us(const TopSettings *settings) {
    uint64_t now = figure_now_us(), span = 60 * US_PER_SECOND;

    if (settings->view.last.set && settings->view.last.us > span)
        span = settings->view.last.us;
    return now > span ? now - span : 1;
}

static int top_reader_follow(TopReader *reader, uint64_t since_us) {
    FollowOptions request = {.session = reader->settings->view.session, .since_us = since_us};
    Follow *follow = NULL;
    int status = remote_follow(reader->context, &request, false, &follow);

    if (status != STATUS_OK)
        return status;
    pthread_mutex_lock(&reader->stream);
    follow_free(reader->work.follow);
    reader->work.follow = follow;
    pthread_mutex_unlock(&reader->stream);
    reader->cut_ns = 0;
    return profile_builder_begin(reader->work.builder, follow_reader(follow)) < 0 ? STATUS_FAILED
                                                                                  : STATUS_OK;
}

int top_reader_open(Context *c, const TopSettings *settings, TopShared *shared, TopReader **ret) {
    _cleanup_(top_reader_freep) TopReader *reader = NULL;
    int r, status = top_reader_new(c, settings, shared, profile_key_bit(PROFILE_TIME), &reader);

    if (status == STATUS_OK)
        status = view_live_ask_host(reader->context, &reader->binaries, &reader->title);
    if (status != STATUS_OK)
        return status;
    reader->is_live = true;
    r = view_resolver_new(&(ViewResolverOptions){.binaries = reader->binaries,
                                                 .context = c,
                                                 .host = reader->title,
                                                 .merges_unnamed = true},
                          &reader->resolver);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to start top: %s.", strerror(-r));
    status = top_reader_follow(reader, top_reader_since_us(settings));
    if (status == STATUS_OK)
        *ret = TAKE_PTR(reader);
    return status;
}

/* Times of the world are those of the first recording. */
static int top_reader_note_coverage(TopReader *reader, const View *view) {
    int r = 0;

    for (size_t i = 0; view->profile->real_known && i < view->coverage.n_gaps && r == 0; i++) {
        PdGap gap = view->coverage.gaps[i];

        gap.from_ns -= MIN(view->profile->real_offset, gap.from_ns);
        if (gap.to_ns != PD_GAP_OPEN)
            gap.to_ns -= MIN(view->profile->real_offset, gap.to_ns);
        r = top_world_note_gap(&reader->shared->world, &gap);
    }
    return r;
}

int top_reader_load(Context *c, const TopSettings *settings, char **files, TopShared *shared,
                    TopReader **ret) {
    _cleanup_(top_reader_freep) TopReader *reader = NULL;
    _cleanup_(view_done) View view = {};
    int r, status = top_reader_new(c, settings, shared, 0, &reader);

    if (status != STATUS_OK)
        return status;
    status = view_load(c, &settings->view, files, &reader->request, &view);
    if (!view.profile)
        return status;
    reader->title = strdup(view.title);
    r = view_resolver_new(
        &(ViewResolverOptions){.files = files, .context = c, .merges_unnamed = true},
        &reader->resolver);
    if (r == 0)
        r = top_reader_add(reader, view.profile, view.profile->last_ns + 1);
    if (r == 0)
        r = top_reader_note_coverage(reader, &view);
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to start top: %s.", strerror(-r));
    *ret = TAKE_PTR(reader);
    return STATUS_OK;
}

static void top_reader_notice(TopReader *reader, const char *text) {
    pthread_mutex_lock(&reader->shared->lock);
    snprintf(reader->shared->notice, sizeof(reader->shared->notice), "%s", text);
    reader->shared->generation++;
    pthread_mutex_unlock(&reader->shared->lock);
}

static bool top_reader_must_stop(TopReader *reader) {
    bool stop;

    pthread_mutex_lock(&reader->shared->lock);
    stop = reader->shared->stop;
    pthread_mutex_unlock(&reader->shared->lock);
    return stop;
}

/* The user wants to see more of the past than there is here. */
static int top_reader_begin_again(TopReader *reader) {
    _cleanup_(profile_freep) Profile *rest = NULL;
    uint64_t since;
    int r;

    pthread_mutex_lock(&reader->shared->lock);
    since = reader->shared->wanted_us;
    reader->shared->wanted_us = 0;
    pthread_mutex_unlock(&reader->shared->lock);
    if (since == 0)
        return 0;
    r = profile_builder_take(reader->work.builder, &rest);
    if (r == 0 && top_reader_follow(reader, since) != STATUS_OK)
        r = -EPIPE;
    if (r < 0)
        return r;
    pthread_mutex_lock(&reader->shared->lock);
    top_world_done(&reader->shared->world);
    r = top_world_init(&reader->shared->world, top_keys, TOP_STACKS_MAX, TOP_CELLS_MAX);
    pthread_mutex_unlock(&reader->shared->lock);
    return r;
}

/* A watermark overtakes the records before it, which are still being sorted; what is older than the
 * last one has come. */
static int top_reader_cut(TopReader *reader, uint64_t watermark_ns) {
    _cleanup_(profile_freep) Profile *slice = NULL;
    uint64_t complete_ns = reader->cut_ns;
    int r;

    /* While the past is read there are many watermarks. */
    if (watermark_ns < reader->cut_ns + NS_PER_SECOND / 2)
        return 0;
    reader->cut_ns = watermark_ns;
    if (complete_ns == 0)
        return 0;
    r = profile_builder_take(reader->work.builder, &slice);
    if (r < 0)
        return r;
    pthread_mutex_lock(&reader->shared->lock);
    reader->shared->notice[0] = '\0';
    r = top_reader_add(reader, slice, complete_ns);
    pthread_mutex_unlock(&reader->shared->lock);
    return r < 0 ? r : top_reader_begin_again(reader);
}

static int top_reader_note_gap(TopReader *reader, const PdGap *gap) {
    int r;

    pthread_mutex_lock(&reader->shared->lock);
    r = top_world_note_gap(&reader->shared->world, gap);
    pthread_mutex_unlock(&reader->shared->lock);
    return r;
}

/* 0 at the end of the stream, or a negative errno. */
static int top_reader_read(TopReader *reader) {
    FollowItem item;
    int r = 0;

    while (r == 0 && !top_reader_must_stop(reader)) {
        r = follow_next(reader->work.follow, &item);
        if (r < 0 || item.what == FOLLOW_END)
            return r;
        if (item.what == FOLLOW_RECORD)
            r = profile_builder_feed(reader->work.builder, &item.record, &item.stamp);
        else if (item.what == FOLLOW_WATERMARK)
            r = top_reader_cut(reader, item.mark.time);
        else
            r = top_reader_note_gap(reader, &item.mark.gap);
    }
    return r;
}

/* Waits for a profd that runs again. */
static int top_reader_resume(TopReader *reader) {
    int status;

    top_reader_notice(reader, "profd does not run; waiting for it.");
    while (!top_reader_must_stop(reader)) {
        (void)poll(NULL, 0, RETRY_MS);
        pthread_mutex_lock(&reader->stream);
        status = remote_follow_resume(reader->context, reader->work.follow);
        pthread_mutex_unlock(&reader->stream);
        if (status == STATUS_OK)
            return profile_builder_begin(reader->work.builder, follow_reader(reader->work.follow));
        if (status != STATUS_NOT_RUNNING)
            return top_reader_follow(reader, figure_now_us()) == STATUS_OK ? 0 : -EPIPE;
    }
    return 0;
}

static void *top_reader_run(void *arg) {
    TopReader *reader = arg;
    char text[128];
    int r = 0;

    while (r == 0 && !top_reader_must_stop(reader)) {
        r = top_reader_read(reader);
        if (r == -ETIMEDOUT || r == -ECONNRESET || r == -EPIPE)
            r = 0;
        if (r == 0 && !top_reader_must_stop(reader))
            r = top_reader_resume(reader);
    }
    if (r < 0) {
        snprintf(text, sizeof(text), "Reading from profd ended: %s.", strerror(-r));
        top_reader_notice(reader, text);
    }
    return NULL;
}

int top_reader_start(TopReader *reader) {
    int r = thread_start(&(ThreadOptions){.name = "top-reader"}, top_reader_run, reader,
                         &reader->thread);

    reader->is_running = r == 0;
    return r;
}

/* The thread may wait for the stream, also for one that it is just opening. */
static void top_reader_stop(TopReader *reader) {
    struct timespec soon;

    pthread_mutex_lock(&reader->shared->lock);
    reader->shared->stop = true;
    pthread_mutex_unlock(&reader->shared->lock);
    do {
        if (pthread_mutex_trylock(&reader->stream) == 0) {
            follow_interrupt(reader->work.follow);
            pthread_mutex_unlock(&reader->stream);
        }
        (void)clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += STOP_MS * 1000000;
        if (soon.tv_nsec >= (long)NS_PER_SECOND) {
            soon.tv_nsec -= (long)NS_PER_SECOND;
            soon.tv_sec++;
        }
    } while (pthread_timedjoin_np(reader->thread, NULL, &soon) != 0);
}

TopReader *top_reader_free(TopReader *reader) {
    if (!reader)
        return NULL;
    if (reader->is_running)
        top_reader_stop(reader);
    view_work_done(&reader->work);
    view_resolver_free(reader->resolver);
    pthread_mutex_destroy(&reader->stream);
    free(reader->title);
    free(reader->binaries);
    free(reader);
    return NULL;
}
