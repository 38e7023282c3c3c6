/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"

#include <errno.h>

#include "util/clock.h"

/*
 * Tracks the time that the session recorded and its gaps. A segment begins with the CPUs that are
 * recorded at that moment and with the gaps that have not ended; later changes are added to it. If
 * the store has no room for a change, the change is kept here until it has, so that no gap is lost.
 */

/* A shorter loss on a ring is reported only as a count, not as a gap. */
#define LOST_GAP_NS NS_PER_SECOND

static void session_coverage_flush(Session *session) {
    PdCoverage *pending = &session->pending;

    while (session->emission && pending->n_gaps > 0) {
        if (store_session_note(session->store, &(SegmentFacts){.gap = &pending->gaps[0]}) < 0)
            return;
        pending->n_gaps--;
        memmove(&pending->gaps[0], &pending->gaps[1], pending->n_gaps * sizeof(*pending->gaps));
    }
}

void session_note_gap(Session *session, const PdGap *gap) {
    if (pd_coverage_add_gap(&session->pending, gap) < 0)
        session_log_failure(session, -ENOMEM, "note a gap");
    session_coverage_flush(session);
}

void session_begin_gap(Session *session, PdGapReason reason, uint64_t at_ns) {
    if (session->gap_since_ns[reason] > 0)
        return;
    session->gap_since_ns[reason] = MAX(at_ns, (uint64_t)1);
    session_note_gap(session, &(PdGap){.from_ns = session->gap_since_ns[reason],
                                       .to_ns = PD_GAP_OPEN,
                                       .cpu = PD_ALL_CPUS,
                                       .reason = reason});
}

void session_end_gap(Session *session, PdGapReason reason, uint64_t at_ns) {
    uint64_t since_ns = session->gap_since_ns[reason];

    if (since_ns == 0)
        return;
    session->gap_since_ns[reason] = 0;
    session_note_gap(
        session,
        &(PdGap){.from_ns = since_ns, .to_ns = at_ns, .cpu = PD_ALL_CPUS, .reason = reason});
}

void session_see_lost(Session *session, unsigned cpu) {
    if (cpu < CPU_LIST_MAX)
        session->lost_bits[cpu / 8] |= (uint8_t)(1 << cpu % 8);
}

void session_see_sample(Session *session, unsigned cpu, uint64_t time_ns) {
    uint64_t before_ns = cpu < CPU_LIST_MAX ? session->sampled_ns[cpu] : time_ns;
    uint8_t bit = (uint8_t)(1 << cpu % 8);

    if (time_ns <= before_ns)
        return;
    session->sampled_ns[cpu] = time_ns;
    if (!(session->lost_bits[cpu / 8] & bit))
        return;
    session->lost_bits[cpu / 8] &= (uint8_t)~bit;
    if (before_ns > 0 && time_ns - before_ns >= LOST_GAP_NS)
        session_note_gap(
            session,
            &(PdGap){.from_ns = before_ns, .to_ns = time_ns, .cpu = cpu, .reason = PD_GAP_LOST});
}

static int session_coverage_add_cpu_gap(PdCoverage *coverage, unsigned cpu, PdGapReason reason) {
    return pd_coverage_add_gap(
        coverage,
        &(PdGap){.from_ns = coverage->from_ns, .to_ns = PD_GAP_OPEN, .cpu = cpu, .reason = reason});
}

/* Notes the CPUs that are recorded, those that went away, and those that should be recorded. While
 * its control group is missing, a session has no rings and counts none of its CPUs as missing. */
static int session_coverage_see_cpus(Session *session, PdCoverage *coverage) {
    bool waits = sampler_is_waiting(session->sampler);
    int r = 0;

    for (unsigned cpu = 0; r == 0 && cpu < CPU_LIST_MAX; cpu++) {
        uint8_t *had = &session->had_cpus[cpu / 8], bit = (uint8_t)(1 << cpu % 8);

        if (sampler_has_cpu(session->sampler, cpu)) {
            *had |= bit;
            pd_coverage_add_cpu(coverage, cpu);
        } else if (!waits && sampler_misses_cpu(session->sampler, cpu)) {
            r = session_coverage_add_cpu_gap(coverage, cpu, PD_GAP_FAILED);
        } else if (!waits && *had & bit) {
            r = session_coverage_add_cpu_gap(coverage, cpu, PD_GAP_OFFLINE);
        }
    }
    return r;
}

/* Notes a control group that came or went: a gap that has ended may reach into the segment that
 * begins. */
static int session_coverage_see_group(Session *session, PdCoverage *coverage) {
    PdGap gap = {.cpu = PD_ALL_CPUS, .reason = PD_GAP_ABSENT};

    if (!sampler_take_group_gap(session->sampler, &gap.from_ns, &gap.to_ns))
        return 0;
    if (sampler_is_waiting(session->sampler)) {
        session_begin_gap(session, PD_GAP_ABSENT, gap.from_ns);
        return 0;
    }
    session->gap_since_ns[PD_GAP_ABSENT] = 0;
    session_note_gap(session, &gap);
    return pd_coverage_add_gap(coverage, &gap);
}

int session_coverage(Session *session, PdCoverage *ret) {
    PdCoverage coverage = {.from_ns = session->emission ? session->swept_ns : session->enabled_ns};
    int r = session_coverage_see_cpus(session, &coverage);

    if (r == 0)
        r = session_coverage_see_group(session, &coverage);
    for (unsigned i = 0; r == 0 && i < PD_GAP_REASONS; i++)
        if (session->gap_since_ns[i] > 0)
            r = pd_coverage_add_gap(&coverage, &(PdGap){.from_ns = session->gap_since_ns[i],
                                                        .to_ns = PD_GAP_OPEN,
                                                        .cpu = PD_ALL_CPUS,
                                                        .reason = (PdGapReason)i});
    if (r < 0)
        pd_coverage_done(&coverage);
    else
        *ret = coverage;
    return r;
}

void session_cover(Session *session, uint64_t start_ns) {
    session_coverage_flush(session);
    session->swept_ns = start_ns;
    store_session_cover(session->store, start_ns);
}

void session_leave(Session *session, PdGapReason reason) {
    (void)sampler_disable(session->sampler);
    session->is_paused = true;
    if (session->store)
        store_session_leave(session->store, reason, clock_monotonic_ns());
}
