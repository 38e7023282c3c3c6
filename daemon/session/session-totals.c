/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-private.h"
#include "util/log.h"

/* What a session reports: figures from the sampler, the store and its own counts, failures to the
 * log, facts to the manifest. */

/* Losses that are not yet recorded in the segment. */
static uint64_t session_totals_unrecorded_losses(const Session *session) {
    uint64_t samples = 0;

    for (size_t i = 0; i < session->dropped.n; i++)
        samples += session->dropped.cpus[i].samples;
    return samples;
}

SessionTotals session_totals(const Session *session) {
    StoreSessionCounts counts = store_session_counts(session->store);
    uint64_t lost = session->account.lost + session_totals_unrecorded_losses(session) +
                    counts.unwritten_samples;
    SessionTotals totals = {.samples = session->account.samples,
                            .lost = lost,
                            .dropped = counts.dropped_samples + counts.unwritten_samples,
                            .throttles = session->account.throttles,
                            .throttled_ns = session->account.throttled_ns,
                            .raw_bytes = counts.total_raw_bytes,
                            .stored_bytes = counts.total_stored_bytes,
                            .segments = counts.segments,
                            .queue_bytes = counts.queue_bytes,
                            .queue_high_bytes = counts.queue_high_bytes,
                            .segment_bytes = counts.stored_bytes,
                            .sweep = session->sweep,
                            .written_sweep = store_session_written(session->store),
                            .stacks = session->stacks,
                            .held_samples = session->held_samples,
                            .error = counts.error,
                            .is_left_open = counts.is_left_open};

    if (session->emission)
        totals.segment_real_ns = session->began.real_ns;
    if (session->sampler) {
        SamplerCounts sampled = sampler_counts(session->sampler);

        totals.is_unwound = sampler_is_unwound(session->sampler);
        totals.stack_bytes = sampler_stack_bytes(session->sampler);
        totals.throttles = sampled.throttles;
        totals.throttled_ns = sampled.throttled_ns;
    }
    return totals;
}

SessionRotations session_rotations(const Session *session) {
    return (SessionRotations){.asked = session->n_begun,
                              .finished = store_session_counts(session->store).begun};
}

bool session_is_sensitive(const Session *session) {
    return session->is_sensitive;
}

bool session_waits(const Session *session) {
    return session->emission && emission_waits(session->emission);
}

int session_log_failure(const Session *session, int error, const char *what) {
    return log_error(error, "Failed to %s of session '%s': %m", what, session->config.name);
}

int session_note(void *userdata, const SegmentFacts *facts) {
    Session *session = userdata;
    int r = store_session_note(session->store, facts);

    if (r < 0)
        log_debug("A fact for the manifest of session '%s' was lost", session->config.name);
    return 0;
}
