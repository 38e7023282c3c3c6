/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "capture/ring/broken-sample.h"
#include "perfdata/record/sample.h"
#include "session/session-private.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Queues batches for the store. Batches for which the writer's queue has no room are lost, counted
 * and noted as a gap.
 *
 * Samples on their way from a ring to the queue of the writer. Those that are written already are
 * skipped, broken ones are left out, stacks are unwound. Then they are gathered per file, up to a
 * frame's worth, and stay in their ring until they are written.
 *
 * Where stacks are unwound they lie in the arena from then on until they are written, and their
 * ring is free at once. A recorder that follows one that was killed finds them there, and writes
 * those that the segments do not have. In time they lie between the segments and the rings: the
 * last sample of a CPU in the arena is where its ring continues.
 */

enum { GATHER_BYTES = 256 << 10 };

void session_forget_batch(StoreBatch *batch) {
    buffer_done(&batch->records);
    *batch = (StoreBatch){};
}

int session_queue(Session *session, StoreBatch *batch) {
    int r;

    if (store_batch_bytes(batch).size == 0)
        return 0;
    r = buffer_error(&batch->records);
    /* The batch may wait for a long time and its allocation counts against the queue, so shrink it
     * to fit. */
    if (r == 0)
        buffer_fit(&batch->records);
    if (r == 0)
        r = store_session_write(session->store, batch);
    if (r == -ENOBUFS || r == -ENOMEM) {
        if (batch->samples > 0)
            session_note_gap(session, &(PdGap){.from_ns = batch->first_ns,
                                               .to_ns = batch->last_ns,
                                               .cpu = PD_ALL_CPUS,
                                               .reason = PD_GAP_LOST});
        dropped_add_batch(&session->dropped, sampler_events(session->sampler), batch);
        session->lacks_side_band |= batch->kind == STORE_SIDE_BAND;
        r = 0;
    }
    session_forget_batch(batch);
    return r;
}

int session_queue_side_band(Session *session) {
    Buffer *pending = emission_pending(session->emission);
    StoreBatch batch = {.kind = STORE_SIDE_BAND};

    if (pending->size == 0)
        return 0;
    batch.records = *pending;
    *pending = (Buffer){};
    return session_queue(session, &batch);
}

int session_queue_gathered(Session *session) {
    int r = session_queue_side_band(session);

    for (size_t i = 0; r == 0 && i < SESSION_GATHERS; i++)
        r = session_queue(session, &session->gathered[i]);
    for (size_t i = 0; r == 0 && i < session->n_waiting; i++)
        r = session_queue(session, &session->waiting[i]);
    session->n_waiting = session->waiting_bytes = 0;
    return r;
}

void session_arena_begin(Session *session) {
    size_t size;
    void *memory = sampler_take_arena(session->sampler, &size);

    if (!memory)
        return;
    if (!sampler_was_taken_over(session->sampler)) {
        arena_init(&session->arena, memory, size);
        return;
    }
    if (arena_adopt(&session->arena, memory, size) < 0)
        log_warning(0,
                    "What the previous recorder left of session '%s' in memory makes no sense, "
                    "dropping it",
                    session->config.name);
}

void session_arena_end(Session *session, bool writer_has_ended) {
    Arena *arena = &session->arena;

    free(session->left);
    /* A writer that hangs in its disk still reads there. */
    if (arena->memory && writer_has_ended)
        (void)munmap(arena->memory, arena->size + ARENA_HEADER_BYTES);
    *arena = (Arena){};
}

static uint64_t session_take_first_ns(const PdEvents *events, Bytes records) {
    PdRecord record;
    PdStamp stamp;

    while (pd_records_next(&records, &record))
        if (record.type == PD_RECORD_SAMPLE && pd_events_stamp(events, &record, &stamp) == 0)
            return stamp.time;
    return UINT64_MAX;
}

static int session_take_read_entry(void *userdata, unsigned cpu, Bytes records) {
    Session *session = userdata;
    const PdEvents *events = sampler_events(session->sampler);
    Bytes unwritten = resume_skip_kept(session->resume, events, cpu, records);
    StoreBatch *left;

    if (unwritten.size == 0 || cpu >= CPU_LIST_MAX)
        return 0;
    left = array_grow(&session->left, &session->n_left);
    if (!left)
        return -ENOMEM;
    *left = (StoreBatch){.kind = STORE_SAMPLES, .cpu = cpu, .kept = unwritten};
    session->oldest_ns = MIN(session->oldest_ns, session_take_first_ns(events, unwritten));
    return 0;
}

int session_arena_read(Session *session) {
    int r =
        session->arena.memory ? arena_each(&session->arena, session_take_read_entry, session) : 0;

    resume_end_kept(session->resume);
    return r == -ENOMEM ? r : 0;
}

/* The address follows the identifier, the first field of each of our samples. */
static void session_take_see_kernel(Session *session, const PdRecord *record,
                                    const PdStamp *stamp) {
    const size_t at = PD_RECORD_HEADER_SIZE + sizeof(uint64_t);

    if ((record->misc & PD_MISC_CPUMODE_MASK) == PD_MISC_KERNEL &&
        stamp->event->attr.sample_type & PD_SAMPLE_IP && record->size >= at + sizeof(uint64_t))
        tracker_see_kernel(session->host.tracker, load_u64(record->data + at, false), stamp->time);
}

static int session_take_sample(Session *session, StoreBatch *batch, unsigned batch_cpu,
                               const PdRecord *record, PdStamp *stamp) {
    if (pd_events_stamp_next(sampler_events(session->sampler), record, stamp) < 0 || !stamp->event)
        return 0;
    if (batch->samples == 0 || stamp->time < batch->first_ns)
        batch->first_ns = stamp->time;
    batch->last_ns = MAX(batch->last_ns, stamp->time);
    batch->samples++;
    session->account.samples++;
    session_see_sample(session, batch_cpu, stamp->time);
    session_take_see_kernel(session, record, stamp);
    if (session->host.binaries)
        binary_watch_see(session->host.binaries, record, stamp);
    return emission_need(session->emission, stamp->pid, stamp->tid, stamp->time,
                         pd_sample_cgroup(record, stamp->event));
}

static void session_take_drop(Session *session, unsigned cpu, Bytes records) {
    const PdEvents *events = sampler_events(session->sampler);
    PdGap gap = {.from_ns = UINT64_MAX, .cpu = cpu, .reason = PD_GAP_LOST};
    uint64_t dropped = 0;
    PdRecord record;
    PdStamp stamp;

    while (pd_records_next(&records, &record)) {
        dropped += record.type == PD_RECORD_SAMPLE;
        if (record.type != PD_RECORD_SAMPLE || pd_events_stamp(events, &record, &stamp) < 0)
            continue;
        gap.from_ns = MIN(gap.from_ns, stamp.time);
        gap.to_ns = MAX(gap.to_ns, stamp.time);
    }
    if (dropped > 0 && gap.from_ns <= gap.to_ns)
        session_note_gap(session, &gap);
    session->not_queued += dropped;
    dropped_add(&session->dropped, cpu, dropped);
}

/* The result of a step that made `made` of `records`. Without memory for it the samples are lost.
 */
static Bytes session_take_result(Session *session, unsigned cpu, Bytes records,
                                 const Buffer *made) {
    if (buffer_error(made) == 0)
        return buffer_bytes(made);
    session_take_drop(session, cpu, records);
    return (Bytes){};
}

static Bytes session_take_remove_broken(Session *session, unsigned cpu, Bytes records) {
    buffer_clear(&session->cleaned);
    dropped_add(
        &session->broken, cpu,
        broken_samples_remove(sampler_taken_events(session->sampler), records, &session->cleaned));
    return session_take_result(session, cpu, records, &session->cleaned);
}

/* Replaces the copies of stacks by call chains. */
static Bytes session_take_unwind(Session *session, unsigned cpu, Bytes records) {
    buffer_clear(&session->unwound);
    dropped_add(&session->broken, cpu,
                unwinder_take(session->host.unwinder, sampler_taken_events(session->sampler),
                              sampler_events(session->sampler), records, &session->unwound,
                              &session->stacks));
    return session_take_result(session, cpu, records, &session->unwound);
}

static int session_take_log_limit(const Session *session) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};

    return log_limited_struct(
        &rate, LOG_LEVEL_WARNING, 0,
        LOG_FIELDS({"PROFD_EVENT", "samples-dropped"}, {"PROFD_SESSION", session->config.name}),
        "Dropping samples of session '%s', all sessions together record more than "
        "MaxBytesPerSec=%" PRIu64 ", raise it or lower Frequency=",
        session->config.name, session->host.rate->limit);
}

/* The manifest notes a CPU with the first batch that contains its samples. */
static bool session_take_is_new_cpu(Session *session, unsigned cpu) {
    uint8_t *bits = &session->seen_cpus[cpu % CPU_LIST_MAX / 8], bit = (uint8_t)(1 << cpu % 8);
    bool is_new = !(*bits & bit);

    *bits |= bit;
    return is_new;
}

/* Adds what the batch needs and says of these records; *records becomes what was not looked at. */
static int session_take_records(Session *session, StoreBatch *batch, unsigned cpu, Bytes *records) {
    PdStamp stamp = {};
    PdRecord record;
    int r = 0;

    while (r == 0 && pd_records_next(records, &record))
        if (record.type == PD_RECORD_SAMPLE)
            r = session_take_sample(session, batch, cpu, &record, &stamp);
        else if (record.type == PD_RECORD_LOST)
            session_see_lost(session, cpu);
    return r;
}

/* Copies records that stay in their ring until they are written. */
static int session_take_gather(Session *session, unsigned cpu, Bytes records) {
    /* Samples for one file may share a frame, and large frames compress better. */
    bool one_file = session->config.layout == LAYOUT_FILE;
    StoreBatch *gathered = &session->gathered[one_file ? 0 : cpu % SESSION_GATHERS];
    Bytes left = records;
    int r = 0;

    if (gathered->records.size + records.size > GATHER_BYTES || session->n_waiting > 0 ||
        session_take_is_new_cpu(session, cpu))
        r = session_queue_gathered(session);
    if (gathered->records.size == 0) {
        gathered->kind = STORE_SAMPLES;
        gathered->cpu = cpu;
        (void)buffer_reserve(&gathered->records, GATHER_BYTES);
    }
    if (r == 0)
        r = session_take_records(session, gathered, cpu, &left);
    buffer_append(&gathered->records, records.data, records.size - left.size);
    return r;
}

/* Samples of a CPU reach the segment in the order of its ring, wherever they waited. */
static bool session_take_must_queue_first(const Session *session) {
    bool gathered = session->n_waiting == SESSION_WAITING || session->waiting_bytes > GATHER_BYTES;

    for (size_t i = 0; !gathered && i < SESSION_GATHERS; i++)
        gathered = session->gathered[i].records.size > 0;
    return gathered;
}

static int session_take_kept(Session *session, unsigned cpu, Bytes records) {
    Bytes left = records;
    StoreBatch *batch;
    int r = session_take_must_queue_first(session) ? session_queue_gathered(session) : 0;

    if (r < 0 || records.size == 0)
        return r;
    (void)session_take_is_new_cpu(session, cpu);
    batch = &session->waiting[session->n_waiting++];
    *batch = (StoreBatch){.kind = STORE_SAMPLES, .cpu = cpu, .kept = records};
    session->waiting_bytes += records.size;
    return session_take_records(session, batch, cpu, &left);
}

static uint64_t session_take_count_samples(Bytes records) {
    uint64_t n = 0;
    PdRecord record;

    while (pd_records_next(&records, &record))
        n += record.type == PD_RECORD_SAMPLE;
    return n;
}

static bool session_take_keep(Session *session, const Batch *batch, Bytes *records) {
    Bytes kept;

    /* What waits in its ring would come before this for the next recorder. */
    if (!batch->is_first || !session->arena.memory)
        return false;
    if (records->size == 0)
        return true;
    kept = arena_append(&session->arena, batch->cpu, *records);
    if (kept.size == 0)
        return false;
    *records = kept;
    return true;
}

static int session_take_unwound(Session *session, const Batch *batch, Bytes records) {
    int r;

    if (!session_take_keep(session, batch, &records)) {
        session->held_samples += session_take_count_samples(records);
        return session_take_gather(session, batch->cpu, records);
    }
    r = session_take_kept(session, batch->cpu, records);
    return r < 0 ? r : 1;
}

int session_take(Session *session, const Batch *batch) {
    bool is_unwound = sampler_is_unwound(session->sampler);
    Bytes records = batch->records;

    if (session->resume)
        records = resume_skip(session->resume, sampler_taken_events(session->sampler), batch->cpu,
                              records);
    /* Unwinding leaves them out as well: a copy of them here would hold stacks. */
    if (session->removes_broken_samples && !is_unwound)
        records = session_take_remove_broken(session, batch->cpu, records);
    /* No segment is open, because the queue had no room to begin one. */
    if (!session->emission) {
        session_take_drop(session, batch->cpu, records);
        return 0;
    }
    if (is_unwound)
        records = session_take_unwind(session, batch->cpu, records);
    if (!byte_rate_pass(session->host.rate, records.size, clock_monotonic_ns())) {
        session_take_drop(session, batch->cpu, records);
        return session_take_log_limit(session);
    }
    return is_unwound ? session_take_unwound(session, batch, records)
                      : session_take_gather(session, batch->cpu, records);
}

/* Whether a reader of the segment can parse all samples: the memory is not trusted. */
static bool session_take_is_sound(const PdEvents *events, Bytes records) {
    PdRecord record;
    PdStamp stamp;

    while (pd_records_next(&records, &record))
        if (record.type == PD_RECORD_SAMPLE &&
            (pd_events_stamp(events, &record, &stamp) < 0 || !stamp.event ||
             !pd_sample_is_whole(&record, stamp.event)))
            return false;
    return true;
}

int session_take_left(Session *session) {
    const PdEvents *events = sampler_events(session->sampler);
    uint64_t before = session->account.samples;
    int r = 0;

    if (!session->emission || session->n_left == 0)
        return 0;
    for (size_t i = 0; r >= 0 && i < session->n_left; i++) {
        const StoreBatch *left = &session->left[i];

        if (session_take_is_sound(events, left->kept))
            r = session_take_kept(session, left->cpu, left->kept);
        else
            session_take_drop(session, left->cpu, left->kept);
    }
    free(session->left);
    session->left = NULL;
    session->n_left = 0;
    log_info("Session '%s' continues with %" PRIu64
             " samples that the previous recorder had unwound and not written",
             session->config.name, session->account.samples - before);
    return MIN(r, 0);
}
