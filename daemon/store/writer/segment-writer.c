/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "store/disk/dirfd.h"
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
    SURVEY_SEC = 3600,
    MEASURE_SEC = 1,
    ROTATE_MIN_BYTES = 512 << 10
};

static void segment_writer_publish_owner(const StoreSession *s) {
    if (s->store->on_written)
        s->store->on_written(s->store->userdata);
}

/* Publishes the figures that the main thread may read. */
static void segment_writer_publish(StoreSession *s) {
    uint64_t raw = s->segment ? segment_raw_bytes(s->segment) : 0,
             stored = s->segment ? segment_stored_bytes(s->segment) : 0;

    pthread_mutex_lock(&s->mutex);
    s->counts.raw_bytes = raw;
    s->counts.stored_bytes = stored;
    s->counts.total_raw_bytes = s->base_raw + raw;
    s->counts.total_stored_bytes = s->base_stored + stored;
    pthread_mutex_unlock(&s->mutex);
}

/* Publishes what readers may see: everything that is written so far. */
static void segment_writer_show(StoreSession *s) {
    int r;

    pthread_mutex_lock(&s->mutex);
    r = segment_view_follow(&s->view, s->segment);
    pthread_mutex_unlock(&s->mutex);
    if (r < 0)
        log_limited(&s->hiding, LOG_LEVEL_WARNING, r,
                    "Failed to show the open segment of session '%s' to snapshots: %m", s->name);
}

static void segment_writer_want_rotation(StoreSession *s, bool wanted) {
    pthread_mutex_lock(&s->mutex);
    s->counts.rotate_wanted = wanted;
    pthread_mutex_unlock(&s->mutex);
}

/* Measures the open segments and deletes old ones if they exceed the budget. */
static void segment_writer_keep_budget(StoreSession *s) {
    uint64_t now = clock_monotonic_ns(), bytes = s->segment ? segment_bytes(s->segment) : 0, limit;
    Store *store = s->store;

    if (s->following)
        bytes += segment_bytes(s->following);
    if (now - s->measured_ns >= MEASURE_SEC * NS_PER_SECOND) {
        s->measured_ns = now;
        store_measure(store);
    }
    pthread_mutex_lock(&store->mutex);
    s->folder->open_bytes = bytes;
    limit = s->folder->runtime ? store_runtime_limit_bytes(store) : store_limit_bytes(store);
    if (s->folder->max_use_bytes > 0)
        limit = MIN(limit, s->folder->max_use_bytes);
    pthread_mutex_unlock(&store->mutex);
    if (bytes > limit / 4 && bytes > ROTATE_MIN_BYTES)
        segment_writer_want_rotation(s, true);
    if (store_is_over(store))
        (void)store_vacuum(store);
}

static void segment_writer_register_segment(StoreSession *s, const Segment *segment) {
    Entry entry = {.name = *segment_name(segment)};
    _cleanup_close_ int fd = store_folder_fd(s->store, s->folder);
    char text[SEGMENT_NAME_MAX];
    bool directory;
    uint64_t bytes;

    segment_name_print(&entry.name, text);
    if (fd < 0 || dirfd_measure(fd, text, &entry.bytes, &entry.directory) < 0)
        return;
    segment_name_beside(&entry.name, ".json", text);
    if (!entry.directory && dirfd_measure(fd, text, &bytes, &directory) == 0)
        entry.bytes += bytes;
    pthread_mutex_lock(&s->store->mutex);
    entry_fill(s->store, &entry, segment_manifest(segment));
    s->folder->open_bytes = 0;
    if (!folder_find(s->folder, &entry.name))
        (void)folder_insert(s->folder, &entry);
    pthread_mutex_unlock(&s->store->mutex);
}

static bool segment_writer_is_gone(const Segment *segment) {
    return segment && segment_is_gone(segment);
}

/* Adds the segment to the totals when it is closed, whatever the reason. */
static void segment_writer_drop_segment(StoreSession *s) {
    s->base_raw += segment_raw_bytes(s->segment);
    s->base_stored += segment_stored_bytes(s->segment);
    s->segment = segment_free(s->segment);
    segment_writer_show(s);
}

static int segment_writer_finish_current(StoreSession *s) {
    ClockAnchor now = s->store->now();
    uint64_t high;
    int r;

    if (!s->segment)
        return 0;
    if (segment_writer_is_gone(s->segment)) {
        log_warning(0, "Segment %08" PRIu64 " of session '%s' was deleted while it was written",
                    segment_name(s->segment)->number, s->name);
        segment_writer_drop_segment(s);
        return 0;
    }
    pthread_mutex_lock(&s->mutex);
    high = s->counts.queue_high_bytes;
    pthread_mutex_unlock(&s->mutex);
    r = segment_finish(s->segment, &now, s->store->synchronised(), high);
    if (r == -EEXIST || r == -EINVAL || r == -EBADMSG || r == -EFBIG || r == -ENOENT) {
        log_warning(r,
                    "Failed to finish segment %08" PRIu64 " of session '%s', leaving it open to "
                    "the next start: %m",
                    segment_name(s->segment)->number, s->name);
        segment_writer_drop_segment(s);
        return 0;
    }
    if (r < 0)
        return r;
    segment_writer_register_segment(s, s->segment);
    segment_writer_drop_segment(s);
    pthread_mutex_lock(&s->mutex);
    s->counts.segments++;
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static int segment_writer_open_segment(StoreSession *s, SegmentPlan **plan, Segment **ret) {
    const SegmentContext context = {.environment = s->store->environment,
                                    .boot = s->store->boot,
                                    .seal = &s->store->seal,
                                    .sensitive = s->sensitive};
    _cleanup_close_ int fd = store_folder_fd(s->store, s->folder);
    int r = fd < 0 ? fd : sequence_write(fd, (*plan)->name.number + 1);

    return r < 0 ? r : segment_open(fd, plan, &context, ret);
}

static void segment_writer_survey_now_and_then(StoreSession *s) {
    uint64_t now = s->store->now().boot_ns;

    if (now - s->folder->surveyed_ns < SURVEY_SEC * NS_PER_SECOND)
        return;
    pthread_mutex_lock(&s->store->disk);
    (void)folder_survey(s->store, s->folder);
    pthread_mutex_unlock(&s->store->disk);
}

/* Begins where the previous recorder ended, because we write what its rings held. A recorder that
 * was killed at once has left a segment without samples, which is skipped. */
static void segment_writer_continue_coverage(StoreSession *s, SegmentPlan *plan) {
    Folder *folder = s->folder;
    const Entry *last = NULL;

    pthread_mutex_lock(&s->store->mutex);
    for (size_t i = 0; i < folder->n_entries; i++)
        if (folder->entries[i].name.number < plan->name.number &&
            folder->entries[i].name.state == SEGMENT_CLOSED && !entry_is_blank(&folder->entries[i]))
            last = &folder->entries[i];
    if (last && last->covered && last->this_boot)
        plan->coverage.from_ns = last->covered_to_ns;
    pthread_mutex_unlock(&s->store->mutex);
    plan->continues = false;
}

/* Recording continues in the next segment without a gap; if a gap is found there later, somebody
 * deleted that segment. */
static void segment_writer_join_coverage(StoreSession *s) {
    const Manifest *next = segment_manifest(s->following);

    if (s->segment && next->covered)
        segment_leave(s->segment, PD_GAP_DELETED, next->coverage.from_ns);
}

static int segment_writer_do_begin(StoreSession *s, Op *op) {
    int r;

    if (op->plan && op->plan->continues)
        segment_writer_continue_coverage(s, op->plan);
    r = op->plan ? segment_writer_open_segment(s, &op->plan, &s->following) : 0;
    if (r < 0)
        return r;
    segment_writer_join_coverage(s);
    r = segment_writer_finish_current(s);
    if (r < 0)
        return r;
    s->plan = segment_plan_free(s->plan);
    s->segment = TAKE_PTR(s->following);
    segment_writer_show(s);
    s->synced_ns = clock_monotonic_ns();
    pthread_mutex_lock(&s->mutex);
    s->counts.segment_began_ns = op->clock.monotonic_ns;
    s->counts.rotate_wanted = false;
    s->counts.begun++;
    pthread_mutex_unlock(&s->mutex);
    segment_writer_publish_owner(s);
    segment_writer_survey_now_and_then(s);
    segment_writer_keep_budget(s);
    /* Enforces the limits of count and age, which do not depend on bytes. */
    (void)store_vacuum(s->store);
    return 0;
}

static int segment_writer_do_batch(StoreSession *s, Op *op) {
    int r = segment_write(s->segment, &op->batch, &op->done);

    if (r == -EINVAL || r == -EBADMSG || r == -ENOMEM || r == -EFBIG) {
        log_limited(&s->dropping, LOG_LEVEL_WARNING, r,
                    "Dropping %" PRIu64 " samples of session '%s' that cannot be written: %m",
                    op->batch.samples, s->name);
        pthread_mutex_lock(&s->mutex);
        s->counts.unwritten_samples += op->batch.samples;
        s->counts.rotate_wanted |= r == -EFBIG;
        pthread_mutex_unlock(&s->mutex);
        return 0;
    }
    if (r < 0)
        return r;
    pthread_mutex_lock(&s->mutex);
    s->counts.total_samples += op->batch.samples;
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

/* Returns the plan of a segment that somebody deleted. */
static SegmentPlan *segment_writer_salvage(StoreSession *s, Segment **segment) {
    SegmentPlan *plan;

    log_warning(0,
                "Segment %08" PRIu64
                " of session '%s' was deleted while it was written, beginning a new one",
                segment_name(*segment)->number, s->name);
    plan = segment_take_plan(*segment);
    (void)pd_coverage_add_gap(&plan->coverage,
                              &(PdGap){.from_ns = plan->coverage.from_ns,
                                       .to_ns = segment_manifest(*segment)->coverage.to_ns,
                                       .cpu = PD_ALL_CPUS,
                                       .reason = PD_GAP_DELETED});
    s->base_raw += segment_raw_bytes(*segment);
    s->base_stored += segment_stored_bytes(*segment);
    *segment = segment_free(*segment);
    segment_writer_show(s);
    return plan;
}

/* Files were deleted, so open all folders again. A deleted segment begins again with the next Op,
 * unless it is about to be finished. */
static void segment_writer_regain_ground(StoreSession *s, Op *op) {
    (void)store_reopen(s->store, s->folder);
    if (op->type == OP_BEGIN && segment_writer_is_gone(s->following))
        op->plan = segment_writer_salvage(s, &s->following);
    if (op->type != OP_BEGIN && op->type != OP_CLOSE && segment_writer_is_gone(s->segment)) {
        s->plan = segment_writer_salvage(s, &s->segment);
        segment_writer_want_rotation(s, true);
    }
}

static int segment_writer_do_sweep(StoreSession *s, Op *op) {
    uint64_t interval, now = clock_monotonic_ns();
    int r = segment_end_sweep(s->segment, &op->marked, op->has_clock ? &op->clock : NULL);

    if (r < 0 && r != -EFBIG)
        return r;
    if (r == 0)
        segment_cover(s->segment, op->covered_ns);
    /* Show the sweep before it counts as written, so that a waiting client sees it. */
    segment_writer_show(s);
    if (r == 0) {
        pthread_mutex_lock(&s->mutex);
        s->view.floor_ns = op->floor_ns;
        pthread_mutex_unlock(&s->mutex);
    }
    if (r == 0)
        atomic_store_explicit(&s->written, op->sweep, memory_order_release);
    else
        segment_writer_want_rotation(s, true);
    if (r == 0)
        segment_writer_publish_owner(s);
    if (segment_writer_is_gone(s->segment)) {
        segment_writer_regain_ground(s, op);
        return 0;
    }
    pthread_mutex_lock(&s->store->mutex);
    interval = s->store->sync_interval_ns;
    pthread_mutex_unlock(&s->store->mutex);
    if (interval > 0 && now - s->synced_ns >= interval) {
        s->synced_ns = now;
        r = segment_sync(s->segment);
        if (r < 0)
            log_warning(r, "Failed to sync segment %08" PRIu64 " of session '%s', ignoring: %m",
                        segment_name(s->segment)->number, s->name);
        s->coverage_changed |= r == 0;
    }
    if (s->coverage_changed)
        s->coverage_changed = segment_save_coverage(s->segment) < 0;
    segment_writer_keep_budget(s);
    return 0;
}

static int segment_writer_perform(StoreSession *s, Op *op) {
    if (op->type == OP_BEGIN)
        return segment_writer_do_begin(s, op);
    if (op->type == OP_CLOSE) {
        if (s->segment)
            segment_leave(s->segment, op->after, op->leave_ns);
        return segment_writer_finish_current(s);
    }
    if (!s->segment) {
        int r = segment_writer_open_segment(s, &s->plan, &s->segment);

        if (r < 0)
            return r;
    }
    if (op->type == OP_NOTE) {
        segment_note(s->segment, &op->facts);
        s->coverage_changed |= op->facts.gap != NULL;
        return 0;
    }
    return op->type == OP_BATCH ? segment_writer_do_batch(s, op) : segment_writer_do_sweep(s, op);
}

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
        struct timespec at = {.tv_sec = (time_t)(until / NS_PER_SECOND),
                              .tv_nsec = (long)(until % NS_PER_SECOND)};

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

    while ((r = segment_writer_perform(s, op)) < 0) {
        segment_writer_log_trouble(s, r);
        if (r == -ENOSPC || r == -EDQUOT)
            (void)store_vacuum(s->store);
        else
            segment_writer_regain_ground(s, op);
        if (!segment_writer_pause_writing(s, &pause_ms))
            return false;
    }
    if (op->type == OP_SWEEP || op->type == OP_BEGIN)
        segment_writer_log_relief(s);
    segment_writer_publish(s);
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

/* Does what can wait until the queue is empty. */
static void segment_writer_tidy(StoreSession *s) {
    segment_writer_set_recovering(s, true);
    while (segment_writer_queue_is_empty(s) &&
           (store_recover_stray(s->store) || folder_mend_manifest(s->store, s->folder) ||
            store_seal_late(s->store)))
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

/* On this thread, since closing a deleted file touches the disk. */
static void segment_writer_close_all(StoreSession *s) {
    SegmentView view;

    pthread_mutex_lock(&s->mutex);
    view = s->view;
    s->view = (SegmentView){.fd = -1};
    pthread_mutex_unlock(&s->mutex);
    segment_view_done(&view);
    s->left_open = s->segment || s->following;
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
        segment_writer_publish_owner(s);
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
        segment_writer_publish_owner(s);
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
