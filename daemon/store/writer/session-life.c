/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/writer/session-private.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/thread.h"

/* The beginning and the end of a session, on the main thread, which waits for no disk. */

enum { RECOVERY_SEC = 60 }; /* a recovery may decompress half a gigabyte or more */

/* Samples are lost when its queue is full, so it gets more CPU time than other helper threads. */
static int session_life_start_thread(StoreSession *session) {
    return thread_start(&(ThreadOptions){.name = "profd-writer", .nice = THREAD_NICE_PROMPT},
                        session_write, session, &session->thread);
}

static void session_life_init(StoreSession *session, Store *store, const SessionConfig *config) {

    session->store = store;
    session->config = *config;
    session->zstd_level = config->zstd_level;
    session->layout = config->layout;
    snprintf(session->name, sizeof(session->name), "%s", config->name);
    session->last = &session->first;
    session->view.fd = -1;
    session->after = PD_GAP_DOWN;
    session->queue_max = SESSION_QUEUE_BYTES;
    session->dropping = (LogRate){.interval_ns = 60 * NS_PER_SECOND, .burst = 3};
    session->hiding = session->dropping;
    pthread_mutex_init(&session->mutex, NULL);
    thread_condition_init(&session->wake);
    thread_condition_init(&session->ended);
}

/* A session that was given up may hang in the kernel for long; its name is free. */
static int session_life_join_list(StoreSession *session) {
    Store *store = session->store;
    int r = 0;

    pthread_mutex_lock(&store->mutex);
    for (StoreSession *other = store->open_sessions; r == 0 && other; other = other->next) {
        pthread_mutex_lock(&other->mutex);
        r = strcmp(other->name, session->name) == 0 && !other->given_up ? -EEXIST : 0;
        pthread_mutex_unlock(&other->mutex);
    }
    if (r == 0) {
        session->next = store->open_sessions;
        store->open_sessions = session;
    }
    pthread_mutex_unlock(&store->mutex);
    return r;
}

static int session_life_log_open_error(const StoreSession *session, int r) {
    return log_error(r, "Failed to open the folder of session '%s' in store '%s': %m",
                     session->name, session->store->path);
}

int store_session_new(Store *store, const SessionConfig *config, bool sensitive,
                      StoreSession **ret) {
    _cleanup_(store_session_closep) StoreSession *session = NULL;
    int r = store_session_start(store, config, sensitive, &session);

    if (r == 0)
        r = store_session_await(session);
    if (r == 0)
        *ret = TAKE_PTR(session);
    return r;
}

int store_session_start(Store *store, const SessionConfig *config, bool sensitive,
                        StoreSession **ret) {
    StoreSession *session;
    int r;

    if (!config_name_is_valid(config->name))
        return -EINVAL;
    session = calloc(1, sizeof(*session));
    if (!session)
        return -ENOMEM;
    session_life_init(session, store, config);
    session->sensitive = sensitive;
    r = session_life_join_list(session);
    if (r == 0)
        r = session_life_start_thread(session);
    if (r < 0) {
        (void)session_life_log_open_error(session, r);
        session_free(session);
        return r;
    }
    *ret = session;
    return 0;
}

int store_session_opened(StoreSession *session) {
    int r;

    pthread_mutex_lock(&session->mutex);
    r = session->opened;
    pthread_mutex_unlock(&session->mutex);
    return r < 0 ? session_life_log_open_error(session, r) : r;
}

int store_session_await(StoreSession *session) {
    int r;

    pthread_mutex_lock(&session->mutex);
    while (session->opened == 0)
        pthread_cond_wait(&session->ended, &session->mutex);
    r = session->opened;
    pthread_mutex_unlock(&session->mutex);
    return r < 0 ? session_life_log_open_error(session, r) : 0;
}

/* Waits for the end as long as the writer makes progress. */
static bool session_life_wait_for_end(StoreSession *session) {
    uint64_t done = 0, patience = 0, recovering = 0;
    bool ended;

    pthread_mutex_lock(&session->mutex);
    done = session->n_done;
    while (!session->has_ended && !session->given_up && patience <= SESSION_DRAIN_SEC + 1) {
        struct timespec at = clock_timespec(clock_monotonic_ns() + NS_PER_SECOND);

        (void)pthread_cond_timedwait(&session->ended, &session->mutex, &at);
        if (session->recovering && recovering++ < RECOVERY_SEC)
            continue;
        patience = session->n_done == done ? patience + 1 : 0;
        done = session->n_done;
    }
    ended = session->has_ended;
    pthread_mutex_unlock(&session->mutex);
    return ended;
}

void store_session_give_up(StoreSession *session) {
    uint64_t samples = 0;
    bool gives_up;

    pthread_mutex_lock(&session->mutex);
    gives_up = !session->has_ended && !session->given_up;
    if (gives_up)
        samples = session_queued_samples(session);
    session->given_up |= gives_up;
    session->counts.unwritten_samples += samples;
    session->counts.is_left_open |= gives_up && session->view.manifest;
    pthread_mutex_unlock(&session->mutex);
    if (!gives_up)
        return;
    /* The writer may be waiting for its folder. */
    pthread_mutex_lock(&session->store->mutex);
    pthread_cond_broadcast(&session->store->recovered);
    pthread_mutex_unlock(&session->store->mutex);
    log_warning(-ETIMEDOUT,
                "Leaving segment '%s.open' to recovery and giving up on %" PRIu64
                " samples after it, the disk does not answer: %m",
                session->path ? session->path : session->name, samples);
}

void store_session_wait(StoreSession *session) {
    if (!session->closing)
        store_session_end(session);
    if (!session_life_wait_for_end(session))
        store_session_give_up(session);
}

void store_session_end(StoreSession *session) {
    Op *op = op_new(OP_CLOSE);

    if (op) {
        op->after = session->after;
        op->leave_ns = session->leave_ns;
    }
    pthread_mutex_lock(&session->mutex);
    /* Only the main thread sets this. */
    session->closing = true;
    session->give_up_ns = clock_monotonic_ns() + SESSION_DRAIN_SEC * NS_PER_SECOND;
    if (op)
        op_queue_append(session, op);
    pthread_cond_signal(&session->wake);
    pthread_mutex_unlock(&session->mutex);
}

bool store_session_has_ended(StoreSession *session) {
    bool ended;

    pthread_mutex_lock(&session->mutex);
    ended = session->has_ended;
    pthread_mutex_unlock(&session->mutex);
    return ended;
}

/* True: the writer has not ended; it frees the session when it does. */
static bool session_life_leave_alone(StoreSession *session) {
    Store *store = session->store;
    bool leaves;

    pthread_mutex_lock(&store->mutex);
    pthread_mutex_lock(&session->mutex);
    leaves = session->owner_gone = !session->has_ended;
    store->n_abandoned += leaves;
    pthread_mutex_unlock(&session->mutex);
    pthread_mutex_unlock(&store->mutex);
    return leaves;
}

StoreSession *store_session_close(StoreSession *session) {
    pthread_t thread;

    if (!session)
        return NULL;
    thread = session->thread;
    store_session_wait(session);
    if (session_life_leave_alone(session)) {
        pthread_detach(thread);
        return NULL;
    }
    (void)pthread_join(thread, NULL);
    return session_free(session);
}
