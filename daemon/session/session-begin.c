/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "session/session-table-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Starting a session takes two steps: helper threads open its events, one session after the other,
 * and then its folder; it records from then on. A session that fails is tried again later.
 */

enum { RETRY_FIRST_SEC = 1, RETRY_LAST_SEC = 60 };

/* Do not log the same failure twice. */
static void session_table_keep_error(SessionEntry *entry) {
    log_keep_error(entry->error, sizeof(entry->error));
    log_mute(entry->error_logged[0] != '\0');
}

static void session_table_end_keep_error(void) {
    log_mute(false);
    log_keep_error(NULL, 0);
}

static void session_table_log_failure(const SessionTable *sessions, SessionEntry *entry,
                                      int error) {
    if (strcmp(entry->error_logged, entry->error) == 0)
        return;
    if (entry->error_logged[0])
        (void)log_error(error, "%s", entry->error);
    memcpy(entry->error_logged, entry->error, sizeof(entry->error_logged));
    session_table_publish(sessions, "failed", entry, entry->error);
}

void session_table_retry_later(SessionEntry *entry) {
    uint64_t delay_ns = entry->retry_delay_ns;

    entry->retry_delay_ns = delay_ns == 0
                                ? RETRY_FIRST_SEC * NS_PER_SECOND
                                : MIN(delay_ns * 2, (uint64_t)RETRY_LAST_SEC * NS_PER_SECOND);
    entry->retry_at_ns = clock_ns(CLOCK_BOOTTIME) + entry->retry_delay_ns;
}

static int session_table_begin_failed(SessionTable *sessions, SessionEntry *entry, SessionPart part,
                                      int error) {
    if (!entry->error_logged[0])
        entry->state_real_ns = clock_ns(CLOCK_REALTIME);

    /* Sweeps run while its events are closed; SESSION_STOPPING makes them skip it. */
    entry->state = SESSION_STOPPING;
    entry->session = session_close(entry->session, false);
    entry->failed_part = part;
    entry->failed_error = error;
    entry->awaits = entry->was_opened = false;
    entry->state = SESSION_FAILED;
    session_table_retry_later(entry);
    session_table_log_failure(sessions, entry, error);
    (void)session_table_arm(sessions);
    return error;
}

static int session_table_set_events(SessionEntry *entry, bool paused) {
    return paused ? session_pause(entry->session) : session_start(entry->session);
}

int session_table_open(SessionTable *sessions, SessionEntry *entry, bool paused) {
    int r;

    entry->retry_paused = paused;
    session_table_keep_error(entry);
    r = session_new(sessions->options.host.sampler, &entry->config, &entry->session);
    if (r == 0)
        r = session_table_set_events(entry, paused);
    session_table_end_keep_error();
    entry->was_opened = r == 0;
    return r < 0 ? session_table_begin_failed(sessions, entry, SESSION_EVENTS, r) : 0;
}

/* Requires that its events are open. */
static int session_table_attach(SessionTable *sessions, SessionEntry *entry) {
    bool paused = entry->retry_paused;
    int r;

    session_table_keep_error(entry);
    r = session_attach(entry->session, &sessions->options.host);
    session_table_end_keep_error();
    if (r < 0)
        return session_table_begin_failed(sessions, entry, SESSION_STORE, r);
    snprintf(entry->describe, sizeof(entry->describe), "%s",
             sampler_describe(session_sampler(entry->session)));
    entry->sensitive = session_is_sensitive(entry->session);
    entry->state = paused ? SESSION_PAUSED : SESSION_STARTING;
    entry->awaits = true;
    return 0;
}

int session_table_open_next(SessionTable *sessions) {
    SessionEntry *next = NULL;
    int r;

    for (size_t i = sessions->n; i-- > 0;) {
        if (sessions->entries[i]->opening)
            return 0;
        if (session_entry_is_opening(sessions->entries[i]))
            next = sessions->entries[i];
    }
    if (!next)
        return 0;
    session_table_keep_error(next);
    r = sampler_opening_begin(sessions->options.host.sampler, &next->config,
                              next->error_logged[0] != '\0', &next->opening);
    session_table_end_keep_error();
    return r < 0 ? session_table_begin_failed(sessions, next, SESSION_EVENTS, r) : 0;
}

/* A failed session stays in SESSION_FAILED until it records. */
static int session_table_start(SessionTable *sessions, SessionEntry *entry, bool paused) {
    entry->retry_paused = paused;
    entry->next = NEXT_NOTHING;
    entry->stop_reason = NULL;
    entry->starting_ns = clock_monotonic_ns();
    if (entry->session)
        return session_table_attach(sessions, entry);
    entry->opening = sampler_opening_cancel(entry->opening);
    entry->awaits = true;
    if (entry->state != SESSION_FAILED)
        entry->state = paused ? SESSION_PAUSED : SESSION_STARTING;
    return session_table_open_next(sessions);
}

int session_table_begin(SessionTable *sessions, SessionEntry *entry, bool paused) {
    entry->error_logged[0] = '\0';
    entry->retry_delay_ns = 0;
    return session_table_start(sessions, entry, paused);
}

int session_table_retry(SessionTable *sessions, SessionEntry *entry) {
    return session_table_start(sessions, entry, entry->retry_paused);
}

void session_table_abandon(SessionTable *sessions, SessionEntry *entry) {
    entry->opening = sampler_opening_cancel(entry->opening);
    entry->awaits = false;
    entry->state = SESSION_INACTIVE;
    entry->stop_at_ns = entry->duration_ns = 0;
    entry->stop_reason = NULL;
    (void)session_table_open_next(sessions);
}

/* Its folder exists: it records from now on. */
static int session_table_settle(SessionTable *sessions, SessionEntry *entry) {
    int r = 0;

    if (!entry->was_opened) {
        session_table_keep_error(entry);
        r = session_table_set_events(entry, entry->state == SESSION_PAUSED);
        session_table_end_keep_error();
    }
    if (r < 0)
        return session_table_begin_failed(sessions, entry, SESSION_EVENTS, r);
    entry->awaits = entry->was_opened = false;
    entry->error[0] = entry->error_logged[0] = '\0';
    entry->retry_delay_ns = 0;
    session_table_retry_later(entry);
    entry->since_real_ns = entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    entry->points[0] = entry->points[1] = (SessionPoint){.at_ns = clock_monotonic_ns()};
    entry->lost_published = entry->rotations_published = 0;
    /* A session that is reopened later keeps this end. */
    if (entry->duration_ns > 0)
        r = session_table_stop_after(sessions, entry, entry->duration_ns);
    entry->duration_ns = 0;
    session_table_publish(sessions, "started", entry, entry->describe);
    return r == 0 ? session_table_arm(sessions) : r;
}

int session_table_await(SessionTable *sessions, SessionEntry *entry) {
    int r;

    session_table_keep_error(entry);
    r = session_await(entry->session);
    session_table_end_keep_error();
    return r < 0 ? session_table_begin_failed(sessions, entry, SESSION_STORE, r)
                 : session_table_settle(sessions, entry);
}

/* Once its events are open, attach it to the store. */
static void session_table_check_opening(SessionTable *sessions, SessionEntry *entry) {
    SamplerSession *sampler;
    int r = sampler_opening_end(entry->opening, &sampler, entry->error, sizeof(entry->error));

    if (r == 0)
        return;
    entry->opening = NULL;
    if (r > 0)
        r = session_new_opened(sampler, &entry->config, &entry->session);
    if (r < 0)
        (void)session_table_begin_failed(sessions, entry, SESSION_EVENTS, r);
    else
        (void)session_table_attach(sessions, entry);
}

void session_table_check_awaiting(SessionTable *sessions, SessionEntry *entry) {
    int r;

    if (entry->opening)
        session_table_check_opening(sessions, entry);
    if (!entry->session)
        return;
    session_table_keep_error(entry);
    r = session_is_open(entry->session);
    session_table_end_keep_error();
    if (r < 0)
        (void)session_table_begin_failed(sessions, entry, SESSION_STORE, r);
    else if (r > 0)
        (void)session_table_settle(sessions, entry);
}
