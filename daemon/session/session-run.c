/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"

#include <errno.h>

#include "session/degraded.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The life of a session, from its events to its end, and the end of each sweep: what was gathered
 * is queued, and the side-band that the history wants written first before that. When the queue is
 * full, the batch is lost; the loss is counted and recorded in the segment. A full queue never
 * stops a sweep.
 */

#define LATELY_NS 60000000000ULL

#define ROUND_PERIOD_NS NS_PER_SECOND

static void session_run_close_events(Session *session, bool keep_rings) {
    if (session->emission && session->sampler)
        session_settle_account(session, "recording stops");
    if (!keep_rings)
        session->sampler = sampler_remove(session->sampler);
}

static void session_run_end_segment(Session *session) {
    if (session->emission)
        (void)session_queue_side_band(session);
    session->emission = emission_free(session->emission);
}

/* Ends the segment once none of its mappings waits for a build id. */
static void session_run_try_to_end(Session *session) {
    if (!session->is_ending || session_waits(session))
        return;
    session->is_ending = false;
    session_run_end_segment(session);
    store_session_end(session->store);
}

void session_end(Session *session) {
    session_run_close_events(session, false);
    session->is_ending = true;
    session_run_try_to_end(session);
}

bool session_has_ended(Session *session) {
    session_run_try_to_end(session);
    return !session->is_ending && store_session_has_ended(session->store);
}

void session_give_up(Session *session) {
    store_session_give_up(session->store);
}

void session_wait(Session *session) {
    session->is_ending = false;
    session_run_end_segment(session);
    store_session_wait(session->store);
}

Session *session_close(Session *session, bool keep_rings) {
    if (!session)
        return NULL;
    session_run_close_events(session, keep_rings);
    session_run_end_segment(session);
    if (session->store)
        store_session_wait(session->store);
    session_arena_end(session, !session->store || store_session_has_ended(session->store));
    store_session_close(session->store);
    resume_free(session->resume);
    buffer_done(&session->cleaned);
    buffer_done(&session->unwound);
    dropped_done(&session->dropped);
    dropped_done(&session->broken);
    pd_coverage_done(&session->pending);
    for (size_t i = 0; i < SESSION_GATHERS; i++)
        session_forget_batch(&session->gathered[i]);
    free(session);
    return NULL;
}

/* Files with stacks, registers or tracepoint data of other users are readable by administrators
 * only. */
static bool session_run_is_sensitive(const PdEvents *events) {
    const uint64_t types = PD_SAMPLE_STACK_USER | PD_SAMPLE_REGS_USER | PD_SAMPLE_RAW;

    for (size_t i = 0; i < pd_events_count(events); i++)
        if (pd_events_at(events, i)->attr.sample_type & types)
            return true;
    return false;
}

/* Read the older segment first, because the newer one overrides what both say about a CPU. */
static int session_run_read_previous(Session *session) {
    History *history = tracker_history(session->host.tracker);
    int r = resume_new(&session->resume);

    for (unsigned back = 2; r == 0 && back-- > 0;) {
        const char *path = store_session_previous(session->store, back);

        r = path ? resume_read(session->resume, path, history) : 0;
        /* What the rings hold is newer and worth more, even if some samples are then recorded
         * twice. */
        if (r < 0 && r != -ENOMEM) {
            log_warning(r,
                        "Failed to read segment '%s' of the previous recorder, some of its samples "
                        "may be recorded twice: %m",
                        path);
            r = 0;
        }
    }
    if (r == 0) {
        session->oldest_ns = resume_oldest_ns(session->resume);
        r = session_arena_read(session);
    }
    return r < 0 ? session_log_failure(session, r, "read the last segments") : 0;
}

int session_new_opened(SamplerSession *sampler, const SessionConfig *config, Session **ret) {
    Session *session = calloc(1, sizeof(*session));

    if (!session) {
        sampler_remove(sampler);
        return -ENOMEM;
    }
    *session = (Session){.config = *config, .sampler = sampler, .oldest_ns = UINT64_MAX};
    session_arena_begin(session);
    sampler_set_userdata(sampler, session);
    *ret = session;
    return 0;
}

int session_new(Sampler *sampler, const SessionConfig *config, Session **ret) {
    SamplerSession *opened;
    int r = sampler_add(sampler, config, &opened);

    return r < 0 ? r : session_new_opened(opened, config, ret);
}

int session_attach(Session *session, const SessionHost *host) {
    int r;

    session->host = *host;
    session->generation = sampler_generation(session->sampler);
    /* The session is not charged for what profd used before it began. */
    account_take(&session->account, session->sampler, host->tracker);
    session->at_rotation = session->at_log = session->account;
    session->is_sensitive = session_run_is_sensitive(sampler_events(session->sampler));
    r = tracker_see_data(host->tracker, sampler_records_data(host->sampler));
    if (r < 0)
        return r;
    return store_session_start(host->store, &session->config, session->is_sensitive,
                               &session->store);
}

int session_await(Session *session) {
    int r = store_session_await(session->store);

    session->is_open = r == 0;
    if (r < 0 || !sampler_was_taken_over(session->sampler))
        return r;
    return session_run_read_previous(session);
}

int session_is_open(Session *session) {
    int r = session->is_open ? 1 : store_session_opened(session->store);

    session->is_open = r > 0;
    return r;
}

uint64_t session_oldest_ns(const Session *session) {
    return session->oldest_ns;
}

SamplerSession *session_sampler(const Session *session) {
    return session->sampler;
}

/* A session that begins paused has rested since the previous recorder's last sample. */
static uint64_t session_run_gap_moment(Session *session) {
    uint64_t now_ns = clock_monotonic_ns();

    if (session->enabled_ns > 0)
        return now_ns;
    session->enabled_ns = now_ns;
    return sampler_was_taken_over(session->sampler) ? 1 : now_ns;
}

int session_start(Session *session) {
    int r = sampler_enable(session->sampler);

    if (r < 0)
        return session_log_failure(session, r, "start the events");
    session_end_gap(session, PD_GAP_PAUSED, session_run_gap_moment(session));
    session->is_paused = false;
    return 0;
}

int session_pause(Session *session) {
    uint64_t moment_ns = session_run_gap_moment(session);
    int r = sampler_disable(session->sampler);

    session->is_paused = true;
    session_begin_gap(session, PD_GAP_PAUSED, moment_ns);
    return r < 0 ? session_log_failure(session, r, "pause the events") : 0;
}

void session_configure(Session *session, const SessionConfig *config) {
    session->config = *config;
    store_session_configure(session->store, config);
}

static int session_run_lose(Session *session, StoreCause cause, uint64_t id, unsigned cpu,
                            uint64_t lost, uint64_t time_ns) {
    const PdEvent *event = pd_events_at(sampler_events(session->sampler), 0);
    StoreBatch batch = {.kind = STORE_SIDE_BAND, .cpu = cpu};
    PdTrailer trailer = {
        .sample_type = event->attr.sample_type, .id = id, .time = time_ns, .cpu = cpu};

    session->account.lost += lost;
    pd_emit_lost_samples(&batch.records, &trailer, lost);
    (void)session_note(session, &(SegmentFacts){.lost = lost, .cpu = cpu, .cause = cause});
    return session_queue(session, &batch);
}

int session_lost(Session *session, uint64_t id, unsigned cpu, uint64_t lost, uint64_t time_ns) {
    /* The segment that is to report it could not begin yet. */
    if (!session->emission) {
        dropped_add(&session->dropped, cpu, lost);
        return 0;
    }
    return session_run_lose(session, STORE_LOST_RING, id, cpu, lost, time_ns);
}

/* Records samples that were left out in the segment as LOST records of the first event. */
static int session_run_record_left_out(Session *session, Dropped *all, StoreCause cause,
                                       uint64_t time_ns) {
    const PdEvent *event = pd_events_at(sampler_events(session->sampler), 0);
    int r = 0;

    /* The room that is left is reserved for the side-band of the samples that are kept. */
    if (all->n > 0 && store_session_counts(session->store).is_full)
        return 0;
    for (size_t i = 0; r == 0 && i < all->n; i++) {
        DroppedCpu *dropped = &all->cpus[i];
        uint64_t samples = dropped->samples;

        dropped->samples = 0;
        if (samples > 0)
            r = session_run_lose(session, cause, event->n_ids > 0 ? event->ids[0] : 0, dropped->cpu,
                                 samples, time_ns);
    }
    return r;
}

/* perf relies on FINISHED_ROUND: no record after it may be older than a record before the previous
 * round. The history never emits a record older than its floor. */
static bool session_run_is_round(Session *session, uint64_t start_ns) {
    bool due = session->round_start_ns == 0 ||
               (session->round_start_ns <= history_floor(tracker_history(session->host.tracker)) &&
                start_ns - session->round_start_ns >= ROUND_PERIOD_NS);

    if (due)
        session->round_start_ns = start_ns;
    return due;
}

/* Adds the stacks of this sweep. Samples without user code have none. */
static void session_run_share_stacks(Session *session, uint64_t now_ns) {
    uint64_t all = 0,
             whole = session->stacks.samples[UNWIND_WHOLE] - session->shared.samples[UNWIND_WHOLE];

    for (unsigned i = 0; i < UNWIND_VERDICTS; i++)
        if (i != UNWIND_NO_USER)
            all += session->stacks.samples[i] - session->shared.samples[i];
    session->shared = session->stacks;
    stack_share_add(&session->share, now_ns, whole, all);
}

void session_listen(Session *session) {
    store_session_listen(session->store, session->sweep);
}

int session_end_sweep(Session *session, uint64_t start_ns, const ClockAnchor *clock, bool listens) {
    bool round;
    int r;

    if (!session->emission)
        return 0;
    r = session_run_record_left_out(session, &session->dropped, STORE_LOST_QUEUE,
                                    clock->monotonic_ns);
    if (r == 0)
        r = session_run_record_left_out(session, &session->broken, STORE_LOST_RING,
                                        clock->monotonic_ns);
    if (r == 0)
        r = session_queue_gathered(session);
    session_cover(session, start_ns);
    if (sampler_is_unwound(session->sampler))
        session_run_share_stacks(session, clock->monotonic_ns);
    round = session_run_is_round(session, start_ns);
    store_session_note_floor(session->store, history_floor(tracker_history(session->host.tracker)));
    session->sweep++;
    sampler_note_sweep(session->sampler, session->sweep);
    arena_note_sweep(&session->arena, session->sweep);
    /* The next sweep gives back what holds little. */
    if (listens || sampler_holds_much(session->sampler) || arena_holds_much(&session->arena))
        session_listen(session);
    if (r == 0)
        r = store_session_end_sweep(session->store, session->sweep, round, clock);
    return r;
}

void session_give_back(Session *session) {
    uint64_t written = store_session_written(session->store);

    sampler_written(session->sampler, written);
    arena_written(&session->arena, written);
}

bool session_has_segment(const Session *session) {
    return session->emission != NULL;
}

static bool session_run_drops_lately(Session *session, uint64_t dropped, uint64_t now_ns) {
    if (dropped != session->dropped_seen)
        session->dropped_ns = now_ns;
    session->dropped_seen = dropped;
    return session->dropped_ns > 0 && now_ns - session->dropped_ns < LATELY_NS;
}

unsigned session_update_degraded(Session *session, unsigned others, uint64_t now_ns) {
    StoreSessionCounts counts = store_session_counts(session->store);
    unsigned set = sampler_degraded(session->sampler) | others;

    if (counts.error == -ENOSPC || counts.error == -EDQUOT)
        set |= DEGRADED_DISK_FULL;
    else if (counts.error < 0 || counts.is_stuck)
        set |= DEGRADED_WRITER_BLOCKED;
    if (session_run_drops_lately(session, counts.dropped_samples + session->not_queued, now_ns))
        set |= DEGRADED_LOST;
    if (sampler_is_unwound(session->sampler) && stack_share_is_short(&session->share, now_ns))
        set |= DEGRADED_SHORT_STACKS;
    degraded_log(session->config.name, session->degraded, set);
    session->degraded = set;
    return set;
}

unsigned session_degraded(const Session *session) {
    return session->degraded;
}

const char *session_path(const Session *session) {
    return store_session_path(session->store);
}
