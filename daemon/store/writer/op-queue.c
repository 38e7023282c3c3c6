/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>

#include "store/writer/session-private.h"
#include "util/clock.h"

/*
 * The main thread's side: every request becomes an Op at the end of the queue, which is bounded by
 * bytes. A request is merged with the last waiting Op where possible, so that marks and facts cost
 * nothing while a disk does not answer; only records and heads are ever refused.
 */

enum { WAKE_BYTES = 1 << 20 };

void store_session_configure(StoreSession *session, const SessionConfig *config) {
    session->zstd_level = config->zstd_level;
    session->layout = config->layout;
    pthread_mutex_lock(&session->store->mutex);
    pthread_mutex_lock(&session->mutex);
    session->config = *config;
    if (session->opened > 0)
        folder_configure(session->folder, config);
    pthread_mutex_unlock(&session->mutex);
    pthread_mutex_unlock(&session->store->mutex);
}

/* Call it with the mutex held. */
void op_queue_append(StoreSession *session, Op *op) {
    StoreSessionCounts *counts = &session->counts;

    if (!session->first)
        session->waits_since_ns = clock_monotonic_ns();
    *session->last = op;
    session->last = &op->next;
    counts->queue_bytes += op->bytes;
    counts->queue_high_bytes = MAX(counts->queue_high_bytes, counts->queue_bytes);
    atomic_fetch_add(&session->store->queued_bytes, op->bytes);
    /* Batches wait for the end of their sweep, so that each sweep wakes the writer only once. */
    session->wakes |= op->type != OP_BATCH || counts->queue_bytes > WAKE_BYTES;
}

/* Wakes the writer without the mutex, which it needs at once. */
static void op_queue_unlock(StoreSession *session) {
    bool wakes = session->wakes;

    session->wakes = false;
    pthread_mutex_unlock(&session->mutex);
    if (wakes)
        pthread_cond_signal(&session->wake);
}

/* Call it with the mutex held: the last Op of that type that the writer has not begun. */
static Op *op_queue_session_waiting(StoreSession *session, OpType type) {
    Op *op = session->first;

    if (!op || (session->busy && !op->next))
        return NULL;
    op = (Op *)((char *)session->last - offsetof(Op, next));
    return op->type == type ? op : NULL;
}

/* Whether the Op fits into this queue and into the memory that all sessions share. */
static bool op_queue_session_has_room(StoreSession *session, const Op *op) {
    uint64_t max = session->queue_max, all = session->store->memory.queue_bytes;

    /* Losing other records spoils later samples, so they get some reserve. */
    if (!(op->type == OP_BATCH && op->batch.kind == STORE_SAMPLES)) {
        max += max / 4;
        all += all / 4;
    }
    return session->counts.queue_bytes + op->bytes <= max &&
           (all == 0 || atomic_load(&session->store->queued_bytes) + op->bytes <= all);
}

/* -ENOBUFS if it does not fit; takes ownership on success. */
static int op_queue_session_enqueue(StoreSession *session, Op *op) {
    int r = 0;

    pthread_mutex_lock(&session->mutex);
    if (op_queue_session_has_room(session, op))
        op_queue_append(session, op);
    else
        r = -ENOBUFS;
    session->refused |= r < 0;
    op_queue_unlock(session);
    return r;
}

static int op_queue_session_set_path(StoreSession *session, const SegmentName *name) {
    SegmentName final = *name;
    char text[SEGMENT_NAME_MAX];
    char *path;

    final.state = SEGMENT_CLOSED;
    segment_name_print(&final, text);
    if (asprintf(&path, "%s/sessions/%s/%s", session->store->path, session->name, text) < 0)
        return -ENOMEM;
    free(session->path);
    session->path = path;
    return 0;
}

int store_session_begin(StoreSession *session, SegmentHead *head) {
    _cleanup_(op_freep) Op *op = op_new(OP_BEGIN);
    Folder *folder = session->folder;
    SegmentPlan *plan;
    uint64_t number;
    int r = op ? segment_plan_new(head, &op->plan) : -ENOMEM;

    if (r < 0)
        return r;
    plan = op->plan;
    pthread_mutex_lock(&session->store->mutex);
    number = folder->next_number;
    pthread_mutex_unlock(&session->store->mutex);
    snprintf(plan->session, sizeof(plan->session), "%s", session->name);
    plan->name = segment_name_at(number, head->clock.real_ns);
    plan->name.state = SEGMENT_OPEN;
    plan->zstd_level = session->zstd_level;
    plan->directory = session->layout == LAYOUT_DIRECTORY;
    plan->n_files = plan->directory ? MIN(session->store->n_cpus, (unsigned)SEGMENT_FILES_MAX) : 0;
    op->bytes += segment_plan_bytes(plan);
    op->clock = head->clock;
    op->has_clock = true;
    r = op_queue_session_set_path(session, &plan->name);
    if (r == 0)
        r = op_queue_session_enqueue(session, op);
    if (r < 0) {
        /* The caller keeps the preamble. */
        head->preamble = plan->preamble;
        plan->preamble = (Buffer){};
        return r;
    }
    (void)TAKE_PTR(op);
    pthread_mutex_lock(&session->store->mutex);
    folder->next_number = MAX(folder->next_number, number + 1);
    pthread_mutex_unlock(&session->store->mutex);
    session->begun = true;
    return 0;
}

int store_session_write(StoreSession *session, StoreBatch *batch) {
    _cleanup_(op_freep) Op *op = NULL;
    int r = buffer_error(&batch->records);

    if (!session->begun)
        return -EINVAL;
    if (r < 0 || store_batch_bytes(batch).size == 0)
        return r;
    op = op_new(OP_BATCH);
    if (!op)
        return -ENOMEM;
    op->batch = *batch;
    op->bytes += batch->records.allocated + batch->kept.size;
    r = op_queue_session_enqueue(session, op);
    if (r < 0) {
        op->batch.records = (Buffer){};
        pthread_mutex_lock(&session->mutex);
        session->counts.dropped_samples += batch->samples;
        pthread_mutex_unlock(&session->mutex);
        return r;
    }
    (void)TAKE_PTR(op);
    batch->records = (Buffer){};
    return 0;
}

int store_session_end_sweep(StoreSession *session, uint64_t sweep, bool round,
                            const ClockAnchor *clock) {
    _cleanup_(op_freep) Op *op = op_new(OP_SWEEP);
    Op *last;

    if (!session->begun)
        return -EINVAL;
    if (!op)
        return -ENOMEM;
    op->sweep = sweep;
    op->marked = !round;
    op->has_clock = clock;
    op->clock = clock ? *clock : (ClockAnchor){};
    op->covered_ns = session->covered_ns;
    op->floor_ns = session->floor_ns;
    pthread_mutex_lock(&session->mutex);
    last = op_queue_session_waiting(session, OP_SWEEP);
    if (last) {
        last->covered_ns = op->covered_ns;
        last->floor_ns = op->floor_ns;
        last->sweep = sweep;
        last->marked &= !round;
        last->has_clock = op->has_clock;
        last->clock = op->clock;
    } else {
        op_queue_append(session, TAKE_PTR(op));
    }
    op_queue_unlock(session);
    return 0;
}

void store_session_cover(StoreSession *session, uint64_t to_ns) {
    session->covered_ns = MAX(session->covered_ns, to_ns);
}

void store_session_note_floor(StoreSession *session, uint64_t floor_ns) {
    session->floor_ns = floor_ns;
}

void store_session_leave(StoreSession *session, PdGapReason reason, uint64_t at_ns) {
    session->after = reason;
    session->leave_ns = at_ns;
}

/* The writer stores `written` and then loads `listened`, so one of both sides sees the other. */
void store_session_listen(StoreSession *session, uint64_t sweep) {
    atomic_store(&session->listened, sweep);
}

uint64_t store_session_written(const StoreSession *session) {
    return atomic_load(&session->written);
}

static bool op_queue_session_same_loss(const SegmentFacts *a, const SegmentFacts *b) {
    return b->lost == 0 || (a->lost > 0 && a->cpu == b->cpu && a->cause == b->cause);
}

static void op_queue_session_add_facts(SegmentFacts *to, const SegmentFacts *facts) {
    to->lost += facts->lost;
    to->throttled_ns += facts->throttled_ns;
    to->throttles += facts->throttles;
    to->inferred += facts->inferred;
    to->dropped += facts->dropped;
    to->sweeps += facts->sweeps;
    to->drain_ns += facts->drain_ns;
    to->cpu_ns += facts->cpu_ns;
    to->memory_bytes = MAX(to->memory_bytes, facts->memory_bytes);
    store_stacks_add(&to->stacks, &facts->stacks);
}

int store_session_note(StoreSession *session, const SegmentFacts *facts) {
    _cleanup_(op_freep) Op *op = op_new(OP_NOTE);
    Op *last;
    int r = 0;

    if (!session->begun)
        return -EINVAL;
    if (!op)
        return -ENOMEM;
    op->facts = *facts;
    if (facts->gap) {
        op->gap = *facts->gap;
        op->facts.gap = &op->gap;
    }
    pthread_mutex_lock(&session->mutex);
    last = facts->gap ? NULL : op_queue_session_waiting(session, OP_NOTE);
    if (last && op_queue_session_same_loss(&last->facts, facts))
        op_queue_session_add_facts(&last->facts, facts);
    else if (session->counts.queue_bytes + op->bytes > session->queue_max + sizeof(*op) * 1024)
        r = -ENOBUFS;
    else
        op_queue_append(session, TAKE_PTR(op));
    op_queue_unlock(session);
    return r;
}

static bool op_queue_session_has_half(const StoreSession *session) {
    uint64_t all = session->store->memory.queue_bytes;

    return session->counts.queue_bytes <= session->queue_max / 2 &&
           (all == 0 || atomic_load(&session->store->queued_bytes) <= all / 2);
}

StoreSessionCounts store_session_counts(StoreSession *session) {
    StoreSessionCounts counts;

    pthread_mutex_lock(&session->mutex);
    session->refused &= !op_queue_session_has_half(session);
    counts = session->counts;
    counts.is_full = session->refused;
    counts.is_stuck =
        session->first && clock_monotonic_ns() - session->waits_since_ns > SESSION_STUCK_NS;
    pthread_mutex_unlock(&session->mutex);
    return counts;
}

const char *store_session_path(const StoreSession *session) {
    return session->path;
}

/* The next entry below *at among those of earlier recorders, newest first. One that could not be
 * recovered yet is as good, since a reader stops at its last whole record. */
static bool op_queue_session_previous_entry(StoreSession *session, size_t *at, Entry *ret) {
    Store *store = session->store;
    Folder *folder = session->folder;
    bool found = false;

    pthread_mutex_lock(&store->mutex);
    while (!folder->recovered)
        pthread_cond_wait(&store->recovered, &store->mutex);
    *at = MIN(*at, folder->n_entries);
    while (!found && *at > 0) {
        const Entry *entry = &folder->entries[--*at];

        found = entry->name.state != SEGMENT_DAMAGED && entry->name.number < session->first_number;
        *ret = *entry;
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

static int op_queue_session_find_previous(StoreSession *session) {
    size_t at = SIZE_MAX, n = 0;
    Entry entry;

    while (n < ARRAY_SIZE(session->previous) &&
           op_queue_session_previous_entry(session, &at, &entry)) {
        bool is_open = entry.name.state == SEGMENT_OPEN;
        char text[SEGMENT_NAME_MAX];

        (void)folder_know(session->store, session->folder, &entry);
        if (is_open && entry.unreadable)
            continue;
        if (!entry.this_boot)
            break;
        /* The manifest of an open one was written before its samples. */
        if (entry.samples == 0 && !is_open)
            continue;
        segment_name_print(&entry.name, text);
        if (asprintf(&session->previous[n], "%s/sessions/%s/%s", session->store->path,
                     session->name, text) < 0) {
            session->previous[n] = NULL;
            return -ENOMEM;
        }
        n++;
    }
    return 0;
}

const char *store_session_previous(StoreSession *session, unsigned back) {
    if (!session->has_previous) {
        (void)op_queue_session_find_previous(session);
        session->has_previous = true;
    }
    return back < ARRAY_SIZE(session->previous) ? session->previous[back] : NULL;
}
