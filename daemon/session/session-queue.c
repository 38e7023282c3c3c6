/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "session/session-private.h"

/*
 * Queues batches for the store. Batches for which the writer's queue has no room are lost, counted
 * and noted as a gap.
 */

void session_forget_batch(StoreBatch *batch) {
    buffer_done(&batch->records);
    *batch = (StoreBatch){};
}

int session_queue(Session *session, StoreBatch *batch) {
    int r;

    if (batch->records.size == 0)
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

int session_release_held(Session *session) {
    emission_release(session->emission);
    return session_queue_side_band(session);
}

int session_queue_gathered(Session *session) {
    int r = session_queue_side_band(session);

    for (size_t i = 0; r == 0 && i < SESSION_GATHERS; i++)
        r = session_queue(session, &session->gathered[i]);
    return r;
}
