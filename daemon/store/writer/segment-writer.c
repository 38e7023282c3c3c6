/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "store/writer/session-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The writer's side: performs one Op after the other, each repeated until it is done. An obstacle
 * (a full disk, a deleted folder, a read-only file system) is logged once, removed if possible, and
 * the Op is tried again with growing pauses, while the queue fills up and the main thread goes on.
 * The end of the trouble is logged too.
 */

enum {
    PAUSE_MIN_MS = 50,
    PAUSE_MAX_MS = 5000,
};

static void segment_writer_set_error(StoreSession *s, int r) {
    pthread_mutex_lock(&s->mutex);
    s->counts.error = r;
    pthread_mutex_unlock(&s->mutex);
}

/* ENOSPC means a lack of bytes or of inodes: find out which. */
static const char *segment_writer_lacking(StoreSession *s, int r) {
    bool lacks;

    store_measure(s->store);
    pthread_mutex_lock(&s->store->mutex);
    lacks = r == -ENOSPC && store_lacks_inodes(s->store);
    pthread_mutex_unlock(&s->store->mutex);
    return lacks ? " (its file system has no inodes left)" : "";
}

static void segment_writer_log_trouble(StoreSession *s, int r) {
    segment_writer_set_error(s, r);
    if (s->logged_error == r)
        return;
    s->logged_error = r;
    log_struct(
        LOG_LEVEL_WARNING, r,
        LOG_FIELDS({"PROFD_EVENT", r == -ENOSPC || r == -EDQUOT ? "disk-full" : "store-failed"},
                   {"PROFD_SESSION", s->name}, {"PROFD_STORE", s->store->path}),
        "Failed to write session '%s' into store '%s', keeping its samples in memory until it can "
        "be written: %m%s",
        s->name, s->store->path, segment_writer_lacking(s, r));
}

static void segment_writer_log_relief(StoreSession *s) {
    if (s->logged_error == 0)
        return;
    s->logged_error = 0;
    segment_writer_set_error(s, 0);
    log_struct(LOG_LEVEL_NOTICE, 0,
               LOG_FIELDS({"PROFD_EVENT", "store-mended"}, {"PROFD_SESSION", s->name},
                          {"PROFD_STORE", s->store->path}),
               "Writing session '%s' into store '%s' again", s->name, s->store->path);
}

/* Waits before the next try; false: the session closes and there is no next try. */
static bool segment_writer_pause_writing(StoreSession *s, unsigned *pause_ms) {
    bool go_on;

    pthread_mutex_lock(&s->mutex);
    go_on = !s->closing || clock_monotonic_ns() < s->give_up_ns;
    if (go_on) {
        uint64_t pause = (s->closing ? PAUSE_MIN_MS : *pause_ms) * NS_PER_MS;
        uint64_t until = clock_monotonic_ns() + pause;
        struct timespec at = clock_timespec(until);

        /* A new Op does not shorten the pause; only closing does. */
        while (clock_monotonic_ns() < until) {
            bool closing = s->closing;

            (void)pthread_cond_timedwait(&s->wake, &s->mutex, &at);
            if (s->closing && !closing)
                break;
        }
    }
    pthread_mutex_unlock(&s->mutex);
    *pause_ms = MIN(*pause_ms * 2, (unsigned)PAUSE_MAX_MS);
    return go_on;
}

/* False: it was given up. */
static bool segment_writer_perform_until_done(StoreSession *s, Op *op) {
    unsigned pause_ms = PAUSE_MIN_MS;
    int r;

    while ((r = op_perform(s, op)) < 0) {
        segment_writer_log_trouble(s, r);
        if (r == -ENOSPC || r == -EDQUOT)
            (void)store_vacuum(s->store);
        else
            op_regain_ground(s, op);
        if (!segment_writer_pause_writing(s, &pause_ms))
            return false;
    }
    if (op->type == OP_SWEEP || op->type == OP_BEGIN)
        segment_writer_log_relief(s);
    op_publish(s);
    return true;
}

/* Returns the first Op and leaves it in the queue; NULL: no more will come. */
static Op *segment_writer_wait_for_op(StoreSession *s) {
    Op *op;

    pthread_mutex_lock(&s->mutex);
    while (!s->first && !s->closing)
        pthread_cond_wait(&s->wake, &s->mutex);
    op = s->given_up ? NULL : s->first;
    s->busy = op;
    pthread_mutex_unlock(&s->mutex);
    return op;
}

static bool segment_writer_queue_is_empty(StoreSession *s) {
    bool empty;

    pthread_mutex_lock(&s->mutex);
    empty = !s->first && !s->closing;
    pthread_mutex_unlock(&s->mutex);
    return empty;
}

static void segment_writer_pop(StoreSession *s, Op *op) {
    pthread_mutex_lock(&s->mutex);
    s->first = op->next;
    if (!s->first)
        s->last = &s->first;
    s->counts.queue_bytes -= op->bytes;
    atomic_fetch_sub(&s->store->queued_bytes, op->bytes);
    s->busy = false;
    s->n_done++;
    s->waits_since_ns = clock_monotonic_ns();
    pthread_mutex_unlock(&s->mutex);
    op_free(op);
}

static void segment_writer_set_recovering(StoreSession *s, bool recovering) {
    pthread_mutex_lock(&s->mutex);
    s->recovering = recovering;
    pthread_mutex_unlock(&s->mutex);
}

/* The main thread reads what was left open before it begins a segment, so it stays until then. */
static bool segment_writer_recover_again(StoreSession *s) {
    return s->segment && folder_recover_again(s->store, s->folder);
}

/* Does what can wait until the queue is empty. */
static void segment_writer_tidy(StoreSession *s) {
    segment_writer_set_recovering(s, true);
    while (segment_writer_queue_is_empty(s) &&
           (store_recover_stray(s->store) || segment_writer_recover_again(s) ||
            folder_mend_manifest(s->store, s->folder) || store_seal_late(s->store)))
        ;
    segment_writer_set_recovering(s, false);
}

/* Writes until the session ends. */
static void segment_writer_write_queue(StoreSession *s) {
    Op *op;

    for (;;) {
        segment_writer_tidy(s);
        op = segment_writer_wait_for_op(s);
        if (!op)
            return;
        if (!segment_writer_perform_until_done(s, op))
            return;
        segment_writer_pop(s, op);
    }
}

/* Counts the samples left in the queue as lost, unless that was done already. */
static void segment_writer_count_rest(StoreSession *s) {
    uint64_t samples = 0;
    bool gives_up;

    pthread_mutex_lock(&s->mutex);
    gives_up = s->first && !s->given_up;
    if (gives_up)
        samples = session_queued_samples(s);
    s->given_up |= gives_up;
    s->counts.unwritten_samples += samples;
    pthread_mutex_unlock(&s->mutex);
    if (gives_up)
        log_warning(s->logged_error,
                    "Giving up on %" PRIu64 " samples that session '%s' could not write, leaving "
                    "its segment to recovery: %m",
                    samples, s->name);
}

/* Lists what could not be finished, so that it counts and a window knows why it has nothing. */
static void segment_writer_leave_open(StoreSession *s) {
    Segment *last = s->following ?: s->segment;
    const Op *op;

    s->left_open = last != NULL;
    if (!last)
        return;
    pthread_mutex_lock(&s->mutex);
    s->counts.is_left_open = true;
    for (op = s->first; op && op->type != OP_CLOSE; op = op->next)
        ;
    if (op)
        segment_leave(last, op->after, 0);
    pthread_mutex_unlock(&s->mutex);
    if (s->segment)
        op_register_segment(s, s->segment);
    if (s->following)
        op_register_segment(s, s->following);
}

/* On this thread, since closing a deleted file touches the disk. */
static void segment_writer_close_all(StoreSession *s) {
    SegmentView view;

    segment_writer_leave_open(s);
    pthread_mutex_lock(&s->mutex);
    view = segment_view_take(&s->view);
    pthread_mutex_unlock(&s->mutex);
    segment_view_done(&view);
    s->segment = segment_free(s->segment);
    s->following = segment_free(s->following);
    s->plan = segment_plan_free(s->plan);
}

static void segment_writer_set_opened(StoreSession *s, int r) {
    pthread_mutex_lock(&s->mutex);
    s->opened = r;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->mutex);
}

/* The closing thread waits for this flag, or has left the session to us. */
static void segment_writer_end(StoreSession *s) {
    bool owner_gone;
    Store *store = s->store;

    pthread_mutex_lock(&s->mutex);
    s->has_ended = true;
    owner_gone = s->owner_gone;
    pthread_cond_broadcast(&s->ended);
    pthread_mutex_unlock(&s->mutex);
    if (!owner_gone) {
        op_tell_owner(s);
        return;
    }
    session_free(s);
    pthread_mutex_lock(&store->mutex);
    store->n_abandoned--;
    pthread_mutex_unlock(&store->mutex);
}

void *session_write(void *session) {
    StoreSession *s = session;
    int r = session_claim(s);

    if (r == 0) {
        op_tell_owner(s);
        segment_writer_set_recovering(s, true);
        folder_recover(s->store, s->folder);
        segment_writer_write_queue(s);
        segment_writer_count_rest(s);
        segment_writer_close_all(s);
    } else {
        segment_writer_set_opened(s, r);
    }
    segment_writer_end(s);
    return NULL;
}
