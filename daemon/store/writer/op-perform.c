/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>

#include "store/disk/dirfd.h"
#include "store/writer/session-private.h"
#include "util/clock.h"
#include "util/log.h"

/* What each Op does on the writer's thread. One that fails may be done again. */

enum {
    SURVEY_SEC = 3600,
    MEASURE_SEC = 1,
    ROTATE_MIN_BYTES = 512 << 10,
};

void op_tell_owner(const StoreSession *s) {
    if (s->store->on_written)
        s->store->on_written(s->store->userdata);
}

/* Publishes the figures that the main thread may read. */
void op_publish(StoreSession *s) {
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
static void op_show(StoreSession *s) {
    SegmentView old = {.fd = -1};
    int r;

    pthread_mutex_lock(&s->mutex);
    r = segment_view_follow(&s->view, s->segment, &old);
    pthread_mutex_unlock(&s->mutex);
    /* This may be the last descriptor of a deleted file, whose closing takes the disk's time. */
    segment_view_done(&old);
    if (r < 0)
        log_limited(&s->hiding, LOG_LEVEL_WARNING, r,
                    "Failed to show the open segment of session '%s' to snapshots: %m", s->name);
}

static void op_want_rotation(StoreSession *s, bool wanted) {
    pthread_mutex_lock(&s->mutex);
    s->counts.rotate_wanted = wanted;
    pthread_mutex_unlock(&s->mutex);
}

/* Measures the open segments and deletes old ones if they exceed the budget. */
static void op_keep_budget(StoreSession *s) {
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
        op_want_rotation(s, true);
    if (store_is_over(store))
        (void)store_vacuum(store);
}

void op_register_segment(StoreSession *s, const Segment *segment) {
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

static bool op_is_gone(const Segment *segment) {
    return segment && segment_is_gone(segment);
}

/* Adds the segment to the totals when it is closed, whatever the reason. */
static void op_drop_segment(StoreSession *s) {
    s->base_raw += segment_raw_bytes(s->segment);
    s->base_stored += segment_stored_bytes(s->segment);
    s->segment = segment_free(s->segment);
    op_show(s);
}

static int op_finish_current(StoreSession *s) {
    ClockAnchor now = s->store->now();
    uint64_t high;
    int r;

    if (!s->segment)
        return 0;
    if (op_is_gone(s->segment)) {
        log_warning(0, "Segment %08" PRIu64 " of session '%s' was deleted while it was written",
                    segment_name(s->segment)->number, s->name);
        op_drop_segment(s);
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
        op_drop_segment(s);
        return 0;
    }
    if (r < 0)
        return r;
    op_register_segment(s, s->segment);
    op_drop_segment(s);
    pthread_mutex_lock(&s->mutex);
    s->counts.segments++;
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static int op_open_segment(StoreSession *s, SegmentPlan **plan, Segment **ret) {
    const SegmentContext context = {.environment = s->store->environment,
                                    .boot = s->store->boot,
                                    .seal = &s->store->seal,
                                    .sensitive = s->sensitive};
    _cleanup_close_ int fd = store_folder_fd(s->store, s->folder);
    int r = fd < 0 ? fd : sequence_write(fd, (*plan)->name.number + 1);

    return r < 0 ? r : segment_open(fd, plan, &context, ret);
}

static void op_survey_now_and_then(StoreSession *s) {
    uint64_t now = s->store->now().boot_ns;

    if (now - s->folder->surveyed_ns < SURVEY_SEC * NS_PER_SECOND)
        return;
    pthread_mutex_lock(&s->store->disk);
    (void)folder_survey(s->store, s->folder);
    pthread_mutex_unlock(&s->store->disk);
}

/* Begins where the previous recorder ended, because we write what its rings held. A recorder that
 * was killed at once has left a segment without samples, which is skipped. If its newest segment is
 * not recovered, our segment must not cover that time too. */
static void op_continue_coverage(StoreSession *s, SegmentPlan *plan) {
    Folder *folder = s->folder;
    const Entry *last = NULL;

    pthread_mutex_lock(&s->store->mutex);
    for (size_t i = 0; i < folder->n_entries; i++)
        if (folder->entries[i].name.number < plan->name.number &&
            !entry_is_blank(&folder->entries[i]))
            last = &folder->entries[i];
    if (last && entry_is_readable(last) && last->covered && last->this_boot)
        plan->coverage.from_ns = last->covered_to_ns;
    pthread_mutex_unlock(&s->store->mutex);
    plan->continues = false;
}

/* Recording continues in the next segment without a gap; if a gap is found there later, somebody
 * deleted that segment. */
static void op_join_coverage(StoreSession *s) {
    const Manifest *next = segment_manifest(s->following);

    if (s->segment && next->covered)
        segment_leave(s->segment, PD_GAP_DELETED, next->coverage.from_ns);
}

static int op_begin(StoreSession *s, Op *op) {
    int r;

    if (op->plan && op->plan->continues)
        op_continue_coverage(s, op->plan);
    r = op->plan ? op_open_segment(s, &op->plan, &s->following) : 0;
    if (r < 0)
        return r;
    op_join_coverage(s);
    r = op_finish_current(s);
    if (r < 0)
        return r;
    s->plan = segment_plan_free(s->plan);
    s->segment = TAKE_PTR(s->following);
    op_show(s);
    s->synced_ns = clock_monotonic_ns();
    pthread_mutex_lock(&s->mutex);
    s->counts.segment_began_ns = op->clock.monotonic_ns;
    s->counts.rotate_wanted = false;
    s->counts.begun++;
    pthread_mutex_unlock(&s->mutex);
    op_tell_owner(s);
    op_survey_now_and_then(s);
    op_keep_budget(s);
    /* Enforces the limits of count and age, which do not depend on bytes. */
    (void)store_vacuum(s->store);
    return 0;
}

static int op_write_batch(StoreSession *s, Op *op) {
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
static SegmentPlan *op_salvage(StoreSession *s, Segment **segment) {
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
    op_show(s);
    return plan;
}

/* Files were deleted, so open all folders again. A deleted segment begins again with the next Op,
 * unless it is about to be finished. */
void op_regain_ground(StoreSession *s, Op *op) {
    (void)store_reopen(s->store, s->folder);
    if (op->type == OP_BEGIN && op_is_gone(s->following))
        op->plan = op_salvage(s, &s->following);
    if (op->type != OP_BEGIN && op->type != OP_CLOSE && op_is_gone(s->segment)) {
        s->plan = op_salvage(s, &s->segment);
        op_want_rotation(s, true);
    }
}

static int op_end_sweep(StoreSession *s, Op *op) {
    uint64_t interval, now = clock_monotonic_ns();
    int r = segment_end_sweep(s->segment, &op->marked, op->has_clock ? &op->clock : NULL);

    if (r < 0 && r != -EFBIG)
        return r;
    if (r == 0)
        segment_cover(s->segment, op->covered_ns);
    /* Show the sweep before it counts as written, so that a waiting client sees it. */
    op_show(s);
    if (r == 0) {
        pthread_mutex_lock(&s->mutex);
        s->view.floor_ns = op->floor_ns;
        pthread_mutex_unlock(&s->mutex);
    }
    if (r == 0)
        atomic_store(&s->written, op->sweep);
    else
        op_want_rotation(s, true);
    if (r == 0 && atomic_load(&s->listened) >= op->sweep)
        op_tell_owner(s);
    if (op_is_gone(s->segment)) {
        op_regain_ground(s, op);
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
    op_keep_budget(s);
    return 0;
}

int op_perform(StoreSession *s, Op *op) {
    if (op->type == OP_BEGIN)
        return op_begin(s, op);
    if (op->type == OP_CLOSE) {
        if (s->segment)
            segment_leave(s->segment, op->after, op->leave_ns);
        return op_finish_current(s);
    }
    if (!s->segment) {
        int r = op_open_segment(s, &s->plan, &s->segment);

        if (r < 0)
            return r;
    }
    if (op->type == OP_NOTE) {
        segment_note(s->segment, &op->facts);
        s->coverage_changed |= op->facts.gap != NULL;
        return 0;
    }
    return op->type == OP_BATCH ? op_write_batch(s, op) : op_end_sweep(s, op);
}
