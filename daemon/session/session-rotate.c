/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/ring/broken-sample.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

/*
 * A segment ends by age, by size, when the wall clock steps against the clock of the samples (so
 * that CLOCK_DATA holds for a whole segment), when CPUs come or go (so that the event table knows
 * all ids), or on request. The events stay open: the next sweep goes into the next segment.
 */

#define HELD_MAX_NS 3000000000ULL

/* A resting session gets no new segment by age, because the next one would be as empty as this
 * one. */
static bool session_rotate_is_resting(const Session *session) {
    return (session->is_paused || sampler_is_waiting(session->sampler)) &&
           session->account.samples == session->at_rotation.samples;
}

RotateReason session_is_due(const Session *session, const ClockAnchor *clock) {
    const SessionConfig *config = &session->config;
    StoreSessionCounts counts = store_session_counts(session->store);

    if (session->generation != sampler_generation(session->sampler))
        return ROTATE_CPUS;
    if (clock_anchor_moved(&session->began, clock, CLOCK_STEP_NS))
        return ROTATE_CLOCK;
    if (config->rotate_interval_ns > 0 && !session_rotate_is_resting(session) &&
        clock->monotonic_ns - session->began.monotonic_ns >= config->rotate_interval_ns)
        return ROTATE_TIME;
    /* While the writer has not begun the segment, the counts are those of the segment before. */
    if (counts.begun < session->n_begun)
        return ROTATE_NOT;
    if ((config->max_segment_bytes > 0 && counts.stored_bytes >= config->max_segment_bytes) ||
        (config->max_segment_raw_bytes > 0 && counts.raw_bytes >= config->max_segment_raw_bytes))
        return ROTATE_SIZE;
    if (counts.rotate_wanted)
        return ROTATE_STORE;
    if (session->rotate_asked)
        return ROTATE_ASKED;
    /* The next segment repeats the side-band, so rotating repairs the gap. */
    if (session->lacks_side_band && !counts.is_full)
        return ROTATE_GAP;
    return ROTATE_NOT;
}

bool session_may_rotate(Session *session, RotateReason reason, const ClockAnchor *clock) {
    if (reason == ROTATE_CPUS || reason == ROTATE_CLOCK || !session_waits(session))
        return true;
    if (session->rotate_held_ns == 0)
        session->rotate_held_ns = clock->monotonic_ns;
    return clock->monotonic_ns - session->rotate_held_ns >= HELD_MAX_NS;
}

void session_ask_rotation(Session *session) {
    session->rotate_asked = true;
}

static const char *const rotate_reasons[] = {
    [ROTATE_NOT] = "",
    [ROTATE_TIME] = "its time is over",
    [ROTATE_SIZE] = "it is large enough",
    [ROTATE_CLOCK] = "the clock was set or the machine slept",
    [ROTATE_CPUS] = "CPUs or its control group came or went",
    [ROTATE_STORE] = "the store asked for it",
    [ROTATE_GAP] = "it lacks names that did not fit",
    [ROTATE_ASKED] = "it was asked for",
};

/* State of the segment that ends, taken before the next one begins. */
typedef struct Ending {
    char path[CONFIG_PATH_MAX];
    StoreSessionCounts counts;
} Ending;

static Ending session_rotate_ending_of(const Session *session) {
    Ending ending = {.counts = store_session_counts(session->store)};

    snprintf(ending.path, sizeof(ending.path), "%s", store_session_path(session->store));
    return ending;
}

/* What the segment has cost; what did not happen is left out. */
static void session_rotate_describe_cost(const Account *cost, const StoreSessionCounts *counts,
                                         Buffer *text) {
    text_printf(text, "%" PRIu64 " samples, ", cost->samples);
    if (cost->lost > 0)
        text_printf(text, "%" PRIu64 " lost, ", cost->lost);
    else
        text_puts(text, "none lost, ");
    text_printf(text, "%" PRIu64 " bytes written so far, %" PRIu64 " before compression; ",
                counts->stored_bytes, counts->raw_bytes);
    text_printf(text, "%" PRIu64 " sweeps took %" PRIu64 " ms", cost->sweeps,
                cost->drain_ns / NS_PER_MS);
    if (counts->queue_high_bytes > 0)
        text_printf(text, ", the queue held up to %" PRIu64 " bytes", counts->queue_high_bytes);
    if (cost->throttles > 0)
        text_printf(text, ", the kernel throttled %" PRIu64 " %s", cost->throttles,
                    cost->throttles == 1 ? "time" : "times");
    text_printf(text, "; profd used %" PRIu64 " ms of CPU", cost->cpu_ns / NS_PER_MS);
    if (cost->scan_ns >= NS_PER_MS)
        text_printf(text, " (%" PRIu64 " ms to read /proc and programs)",
                    cost->scan_ns / NS_PER_MS);
    text_printf(text, " and %" PRIu64 " KiB of memory", cost->memory_bytes >> 10);
    text_putc(text, '\0');
}

static void session_rotate_log_ending(Session *session, const Ending *ending, const char *why) {
    const Account whole = account_between(&session->at_log, &session->account), *cost = &whole;
    _cleanup_(buffer_done) Buffer text = {};
    const char *path = ending->path;
    char samples[32], lost[32];

    session->at_log = session->account;
    snprintf(samples, sizeof(samples), "%" PRIu64, cost->samples);
    snprintf(lost, sizeof(lost), "%" PRIu64, cost->lost);
    session_rotate_describe_cost(cost, &ending->counts, &text);
    log_struct(LOG_LEVEL_INFO, 0,
               LOG_FIELDS({"PROFD_EVENT", "segment-finished"},
                          {"PROFD_SESSION", session->config.name}, {"PROFD_SEGMENT", path},
                          {"PROFD_SAMPLES", samples}, {"PROFD_LOST", lost}),
               "Finishing segment '%s', since %s: %s", path, why,
               buffer_error(&text) ? "no memory for its counts" : (const char *)text.data);
    if (cost->lost > 0)
        log_struct(LOG_LEVEL_WARNING, 0,
                   LOG_FIELDS({"PROFD_EVENT", "samples-lost"},
                              {"PROFD_SESSION", session->config.name}, {"PROFD_SEGMENT", path},
                              {"PROFD_LOST", lost}),
                   "Session '%s' lost %" PRIu64 " of its samples, raise BufferSize= or lower "
                   "Frequency= if that goes on",
                   session->config.name, cost->lost);
}

static StoreStacks session_rotate_stacks(const Session *session, const uint64_t *samples) {
    return (StoreStacks){.whole = samples[UNWIND_WHOLE],
                         .truncated = samples[UNWIND_TRUNCATED],
                         .pending = samples[UNWIND_PENDING],
                         .refused = samples[UNWIND_REFUSED],
                         .no_rule = samples[UNWIND_NO_RULE],
                         .anonymous = samples[UNWIND_ANONYMOUS],
                         .no_code = samples[UNWIND_NO_CODE],
                         .stuck = samples[UNWIND_STUCK],
                         .bits32 = samples[UNWIND_32_BIT],
                         .no_user = samples[UNWIND_NO_USER],
                         .bytes = sampler_stack_bytes(session->sampler)};
}

/* Writes the cost since the last note into the manifest of the open segment. */
static void session_rotate_note_account(Session *session) {
    SegmentFacts facts;
    Account cost;

    account_take(&session->account, session->sampler, session->host.tracker);
    session->account.stacks = session->stacks;
    cost = account_between(&session->at_rotation, &session->account);
    session->at_rotation = session->account;
    facts = (SegmentFacts){.throttled_ns = cost.throttled_ns,
                           .throttles = cost.throttles,
                           .sweeps = cost.sweeps,
                           .drain_ns = cost.drain_ns,
                           .cpu_ns = cost.cpu_ns,
                           .memory_bytes = cost.memory_bytes};
    if (sampler_is_unwound(session->sampler))
        facts.stacks = session_rotate_stacks(session, cost.stacks.samples);
    (void)session_note(session, &facts);
}

void session_settle_account(Session *session, const char *why) {
    Ending ending = session_rotate_ending_of(session);

    session_rotate_note_account(session);
    session_rotate_log_ending(session, &ending, why);
}

static int session_rotate_head_of(const Session *session, Emission *emission,
                                  const ClockAnchor *clock, const PdCoverage *coverage,
                                  SegmentHead *ret) {
    int r;

    *ret = (SegmentHead){.events = sampler_events(session->sampler),
                         .tracing = sampler_tracing(session->sampler),
                         .clock = *clock,
                         .coverage = coverage,
                         .continues = !session->emission && !session->n_begun &&
                                      sampler_was_taken_over(session->sampler)};
    r = emission_preamble(emission, &ret->preamble);

    pd_emit_mark(&ret->preamble, PD_RECORD_FINISHED_INIT);
    return r < 0 ? r : buffer_error(&ret->preamble);
}

int session_rotate(Session *session, RotateReason reason, const ClockAnchor *clock) {
    const PdEvent *side_band = sampler_side_band_event(session->host.sampler);
    PdTrailer trailer = {.sample_type = side_band->attr.sample_type, .id = side_band->ids[0]};
    _cleanup_(emission_freep) Emission *emission = NULL;
    PdCoverage coverage = {};
    SegmentHead head = {};
    Ending ending;
    int r;

    /* With a full queue the next segment would begin incomplete, so keep the open one. */
    if (session->emission && store_session_counts(session->store).is_full)
        return 0;
    /* The disk has not answered yet. */
    if (!session->is_open)
        return 0;
    /* There is no room for it; the next sweep tries again. */
    if (emission_new(tracker_history(session->host.tracker), &trailer, &emission) < 0)
        return 0;
    if (sampler_takes_stacks(session->sampler))
        emission_set_data(emission);
    r = session_coverage(session, &coverage);
    if (r == 0)
        r = session_rotate_head_of(session, emission, clock, &coverage, &head);
    if (r == 0 && session->emission) {
        ending = session_rotate_ending_of(session);
        session_rotate_note_account(session);
        r = session_queue_side_band(session);
    }
    if (r == 0)
        r = store_session_begin(session->store, &head);
    buffer_done(&head.preamble);
    pd_coverage_done(&coverage);
    /* The queue has no room; the next sweep tries again. */
    if (r == -ENOBUFS)
        return 0;
    if (r < 0)
        return session_log_failure(session, r, "begin a segment");
    if (session->emission)
        session_rotate_log_ending(session, &ending, rotate_reasons[reason]);
    emission_free(session->emission);
    session->emission = TAKE_PTR(emission);
    session->n_begun++;
    session->generation = sampler_generation(session->sampler);
    session->began = *clock;
    session->removes_broken_samples = broken_samples_are_possible(sampler_events(session->sampler));
    session->round_start_ns = session->rotate_held_ns = 0;
    session->rotate_asked = false;
    session->lacks_side_band = false;
    memset(session->seen_cpus, 0, sizeof(session->seen_cpus));
    return 0;
}
