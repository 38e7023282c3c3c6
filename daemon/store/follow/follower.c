/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/follow/follower.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include "store/follow/follower-stream.h"
#include "util/clock.h"

/*
 * Reads one segment after another, the oldest first, then waits for the sweeps of the open one.
 * Only one segment is open at a time, so retention may delete others: the stream then has a gap.
 */

enum { URGENT_SWEEPS = 3, EARLY_PART = 4 };

struct FollowerList {
    Store *store;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    LIST_HEAD(, Follower) followers;
    size_t n;
    bool ending;
};

struct Follower {
    LIST_ENTRY(Follower) list;
    FollowerList *owner;
    FollowerOptions options;
    int wakeup;             /* becomes readable when a sweep is written, and at the end */
    uint64_t next_ns;       /* when it wants the next sweep to be written */
    _Atomic bool ending;    /* the daemon ends */
    _Atomic unsigned hurry; /* how many sweeps it may still have at once */
    uint64_t number;        /* of the next segment */
    FollowerBefore before;
    FollowerStream stream;
};

int follower_list_new(Store *store, FollowerList **ret) {
    FollowerList *list = calloc(1, sizeof(*list));

    if (!list)
        return -ENOMEM;
    list->store = store;
    pthread_mutex_init(&list->mutex, NULL);
    pthread_cond_init(&list->ended, NULL);
    *ret = list;
    return 0;
}

static void follower_wake(Follower *follower) {
    uint64_t one = 1;

    (void)!write(follower->wakeup, &one, sizeof(one));
}

FollowerList *follower_list_free(FollowerList *list) {
    Follower *f;

    if (!list)
        return NULL;
    pthread_mutex_lock(&list->mutex);
    LIST_FOREACH(f, &list->followers, list) {
        atomic_store(&f->ending, true);
        follower_wake(f);
    }
    while (!LIST_EMPTY(&list->followers))
        pthread_cond_wait(&list->ended, &list->mutex);
    pthread_mutex_unlock(&list->mutex);
    pthread_mutex_destroy(&list->mutex);
    pthread_cond_destroy(&list->ended);
    free(list);
    return NULL;
}

bool follower_list_wake(FollowerList *list) {
    bool hurry = false;
    Follower *f;

    pthread_mutex_lock(&list->mutex);
    LIST_FOREACH(f, &list->followers, list) {
        if (atomic_load(&f->hurry) > 0) {
            atomic_fetch_sub(&f->hurry, 1);
            f->next_ns = 0;
            hurry = true;
        }
        follower_wake(f);
    }
    pthread_mutex_unlock(&list->mutex);
    return hurry;
}

uint64_t follower_list_next_ns(FollowerList *list) {
    uint64_t next_ns = UINT64_MAX;
    Follower *f;

    pthread_mutex_lock(&list->mutex);
    LIST_FOREACH(f, &list->followers, list)
        next_ns = MIN(next_ns, f->next_ns);
    pthread_mutex_unlock(&list->mutex);
    return next_ns;
}

bool follower_list_wants(FollowerList *list, uint64_t now_ns) {
    bool wants = false;
    Follower *f;

    pthread_mutex_lock(&list->mutex);
    LIST_FOREACH(f, &list->followers, list) {
        /* A sweep that comes a little early saves one of its own. */
        if (now_ns + f->options.every_ns / EARLY_PART < f->next_ns)
            continue;
        f->next_ns = now_ns + f->options.every_ns;
        wants = true;
    }
    pthread_mutex_unlock(&list->mutex);
    return wants;
}

int follower_new(FollowerList *list, const FollowerOptions *options, Follower **ret) {
    Follower *follower = calloc(1, sizeof(*follower));
    int r = 0;

    if (!follower)
        return -ENOMEM;
    follower->owner = list;
    follower->options = *options;
    follower->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (follower->wakeup < 0)
        r = -errno;
    if (options->until_ns > 0 && options->until_ns <= clock_ns(CLOCK_REALTIME))
        follower->hurry = URGENT_SWEEPS;
    pthread_mutex_lock(&list->mutex);
    if (r == 0 && list->n >= FOLLOWERS_MAX)
        r = -EBUSY;
    if (r == 0) {
        list->n++;
        LIST_INSERT_HEAD(&list->followers, follower, list);
    }
    pthread_mutex_unlock(&list->mutex);
    if (r < 0) {
        closep(&follower->wakeup);
        free(follower);
        return r;
    }
    *ret = follower;
    return 0;
}

Follower *follower_free(Follower *follower) {
    FollowerList *list;

    if (!follower)
        return NULL;
    list = follower->owner;
    follower_stream_done(&follower->stream);
    pthread_mutex_lock(&list->mutex);
    LIST_REMOVE(follower, list);
    list->n--;
    closep(&follower->wakeup);
    free(follower);
    pthread_cond_signal(&list->ended);
    pthread_mutex_unlock(&list->mutex);
    return NULL;
}

/* Why nothing is recorded after this one, as long as the next one has not begun. */
static PdGapReason follower_reason_after(const Store *store, const Entry *entry) {
    if (!entry)
        return PD_GAP_NOT_STARTED;
    if (!entry_is_readable(entry) || !entry->covered)
        return PD_GAP_UNKNOWN;
    return strcmp(entry->boot, store->boot) == 0 ? entry->after : PD_GAP_REBOOTED;
}

/* Begins with the segment that will hold what comes next. */
static void follower_seek_next(Follower *f) {
    Store *store = f->owner->store;
    const Entry *newest = NULL;
    Folder *folder;

    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, f->options.session);
    for (size_t i = 0; folder && i < folder->n_entries; i++)
        if (!newest || folder->entries[i].name.number > newest->name.number)
            newest = &folder->entries[i];
    f->number = newest ? newest->name.number + 1 : 0;
    f->before = (FollowerBefore){.number = f->number,
                                 .gaps = {{.to_ns = UINT64_MAX,
                                           .cpu = PD_ALL_CPUS,
                                           .reason = follower_reason_after(store, newest)}},
                                 .n = 1};
    pthread_mutex_unlock(&store->mutex);
}

/* Begins with the first segment of the window. A position is of this boot, so there is at most one
 * gap, up to that segment; its end is not compared, because the clock may have been set since. */
static void follower_seek_first(Follower *f, const Window *window) {
    const PdCoverage *coverage = &window->coverage;
    FollowerBefore *before = &f->before;

    f->number = before->number = window->parts[0].name.number;
    if (f->options.position_ns > 0) {
        if (coverage->n_gaps > 0 && coverage->gaps[0].cpu == PD_ALL_CPUS &&
            coverage->gaps[0].from_ns == coverage->from_ns)
            before->gaps[before->n++] = (PdGap){
                .to_ns = UINT64_MAX, .cpu = PD_ALL_CPUS, .reason = coverage->gaps[0].reason};
        return;
    }
    for (size_t i = 0; i < coverage->n_gaps && before->n < ARRAY_SIZE(before->gaps); i++)
        if (coverage->gaps[i].cpu == PD_ALL_CPUS &&
            coverage->gaps[i].to_ns <= window->parts[0].real_from_ns)
            before->gaps[before->n++] = coverage->gaps[i];
}

/* Whether something in the window may still be recorded, or written by the next sweep. */
static bool follower_may_come(const Follower *f, const SnapshotFailure *why) {
    const FollowerOptions *o = &f->options;
    Store *store = f->owner->store;
    const Folder *folder;
    bool records = false;

    if (o->position_ns > 0 || o->until_ns == 0 || o->until_ns > clock_ns(CLOCK_REALTIME))
        return true;
    pthread_mutex_lock(&store->mutex);
    folder = store_folder(store, o->session);
    if (folder && folder->session) {
        pthread_mutex_lock(&folder->session->mutex);
        records = folder->session->view.manifest;
        pthread_mutex_unlock(&folder->session->mutex);
    }
    pthread_mutex_unlock(&store->mutex);
    return records && o->until_ns > why->newest_ns;
}

int follower_seek(Follower *f, SnapshotFailure *ret_why) {
    const FollowerOptions *o = &f->options;
    WindowQuery query = {.since_ns = o->position_ns > 0 ? o->position_ns : o->since_ns,
                         .until_ns = o->position_ns > 0 ? 0 : o->until_ns,
                         .by_monotonic = o->position_ns > 0};
    _cleanup_(window_freep) Window *window = NULL;
    int r;

    memcpy(query.session, o->session, sizeof(query.session));
    r = window_new(f->owner->store, &query, &window, ret_why);
    if (r == -ENODATA && ret_why->error == SNAPSHOT_UNAVAILABLE && follower_may_come(f, ret_why)) {
        follower_seek_next(f);
        return 0;
    }
    if (r < 0)
        return r;
    if (window->sensitive && !o->privileged)
        return -EACCES;
    follower_seek_first(f, window);
    return 0;
}

/* Waits for a sweep. False: the client is gone, or the daemon ends. */
static bool follower_wait(Follower *f) {
    struct pollfd fds[] = {{.fd = f->wakeup, .events = POLLIN},
                           {.fd = f->stream.socket, .events = POLLRDHUP}};
    uint64_t n;

    /* A sweep may be late; but the end of a window comes without one. */
    (void)poll(fds, ARRAY_SIZE(fds), (int)(f->options.every_ns * 3 / 2 / NS_PER_MS));
    (void)!read(f->wakeup, &n, sizeof(n));
    return !atomic_load(&f->ending) && fds[1].revents == 0;
}

/* One segment to its end. 1: the window has ended; 0: the next segment follows. */
static int follower_take_segment(Follower *f, FollowerState *state) {
    Store *store = f->owner->store;
    uint64_t number = state->name.number;
    int r = follower_stream_begin(&f->stream, state);

    while (r == 0) {
        bool records, is_over = !state->is_open;

        r = follower_stream_pass(&f->stream, state);
        if (r != 0 || is_over)
            break;
        if (!follower_wait(f))
            return -EPIPE;
        follower_state_done(state);
        *state = (FollowerState){};
        r = follower_state_find(store, f->options.session, number, state, &records);
        if (r <= 0 || state->name.number != number) {
            /* It was deleted while it was written. */
            r = MIN(r, 0);
            break;
        }
        r = state->is_open ? 0 : follower_stream_finish_segment(&f->stream);
    }
    if (r >= 0)
        r = follower_stream_end_segment(&f->stream, number) ?: r;
    f->number = number + 1;
    return r;
}

static int follower_take_next(Follower *f) {
    FollowerState state = {};
    bool records = false;
    int r = follower_state_find(f->owner->store, f->options.session, f->number, &state, &records);

    if (r > 0)
        r = follower_take_segment(f, &state);
    else if (r == 0 && !records && f->options.until_ns > 0 &&
             clock_ns(CLOCK_REALTIME) >= f->options.until_ns)
        r = 1;
    else if (r == 0)
        r = follower_wait(f) ? 0 : -EPIPE;
    follower_state_done(&state);
    return r;
}

void follower_run(Follower *f, int socket, int (*send)(void *to, Bytes bytes), void *to) {
    const FollowerStream stream = {.store = f->owner->store,
                                   .options = &f->options,
                                   .before = &f->before,
                                   .socket = socket,
                                   .send = send,
                                   .to = to};
    int r = socket < 0 ? -EPIPE : follower_stream_open(&stream, &f->stream);

    while (r == 0 && !atomic_load(&f->ending))
        r = follower_take_next(f);
    if (r > 0)
        (void)follower_stream_finish(&f->stream);
    follower_free(f);
}
