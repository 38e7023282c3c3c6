/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "store/writer/session-private.h"

/*
 * The operations in the queue of a session. Both threads use these functions; the last thread that
 * uses the session frees it.
 */

Op *op_new(OpType type) {
    Op *op = calloc(1, sizeof(*op));

    if (op) {
        op->type = type;
        op->bytes = sizeof(*op);
    }
    return op;
}

Op *op_free(Op *op) {
    if (!op)
        return NULL;
    segment_plan_free(op->plan);
    buffer_done(&op->batch.records);
    free(op);
    return NULL;
}

static void op_session_leave_list(StoreSession *session) {
    StoreSession **at;

    pthread_mutex_lock(&session->store->mutex);
    for (at = &session->store->open_sessions; *at && *at != session; at = &(*at)->next)
        ;
    if (*at)
        *at = session->next;
    pthread_mutex_unlock(&session->store->mutex);
}

StoreSession *session_free(StoreSession *session) {
    while (session->first) {
        Op *op = session->first;

        session->first = op->next;
        atomic_fetch_sub(&session->store->queued_bytes, op->bytes);
        op_free(op);
    }
    op_session_leave_list(session);
    session_release(session, session->left_open);
    pthread_mutex_destroy(&session->mutex);
    pthread_cond_destroy(&session->wake);
    pthread_cond_destroy(&session->ended);
    free(session->previous[0]);
    free(session->previous[1]);
    free(session->path);
    free(session);
    return NULL;
}

uint64_t session_queued_samples(const StoreSession *session) {
    uint64_t samples = 0;

    for (const Op *op = session->first; op; op = op->next)
        samples += op->type == OP_BATCH ? op->batch.samples : 0;
    return samples;
}
