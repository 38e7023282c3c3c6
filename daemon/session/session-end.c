/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "session/session-table-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * An entry exists before and after its session. The main thread never waits for a disk, so ending a
 * session takes two steps: its events are closed at once, and the rest is freed when its writer
 * reports that it is done. The time until a session stops by itself includes suspend.
 */

enum { GIVE_UP_SEC = 8 };

static int session_table_on_timer(void *userdata);

int session_table_new(const SessionTableOptions *options, SessionTable **ret) {
    SessionTable *sessions = calloc(1, sizeof(*sessions));
    int r;

    if (!sessions)
        return -ENOMEM;
    sessions->options = *options;
    r = loop_add_deferred(options->loop, session_table_on_timer, sessions, &sessions->timer);
    if (r < 0) {
        free(sessions);
        return r;
    }
    *ret = sessions;
    return 0;
}

SessionTable *session_table_free(SessionTable *sessions, bool keep_rings) {
    if (!sessions)
        return NULL;
    for (size_t i = 0; i < sessions->n; i++) {
        SessionEntry *entry = sessions->entries[i];

        entry->session = session_close(entry->session, keep_rings);
        session_entry_free(entry);
    }
    loop_source_free(sessions->timer);
    free(sessions);
    return NULL;
}

void session_table_set_host(SessionTable *sessions, const SessionHost *host) {
    sessions->options.host = *host;
}

/* Opening may have changed other events of the group too, so the whole session starts again. */
static void session_table_check_trial(SessionTable *sessions, SessionEntry *entry) {
    SessionNext next = entry->state == SESSION_PAUSED ? NEXT_BEGIN_PAUSED : NEXT_BEGIN;
    int r = sampler_trial_end(entry->trial, session_sampler(entry->session));

    if (r == 0)
        return;
    entry->trial = NULL;
    session_table_retry_later(entry);
    if (r > 0) {
        log_notice("Restarting session '%s', an event that it lacked can be recorded now",
                   entry->config.name);
        (void)session_table_stop(sessions, entry, PD_GAP_REOPENED);
        entry->next = next;
    }
    (void)session_table_arm(sessions);
}

int session_table_stop(SessionTable *sessions, SessionEntry *entry, PdGapReason reason) {
    int r;

    entry->trial = sampler_opening_cancel(entry->trial);
    session_leave(entry->session, reason);
    r = sessions->options.drain(sessions->options.userdata);
    if (r < 0)
        return r;
    /* Sweeps run while its events are closed; SESSION_STOPPING makes them skip it. */
    entry->state = SESSION_STOPPING;
    if (reason == PD_GAP_STOPPED)
        entry->stop_at_ns = entry->duration_ns = 0;
    entry->awaits = false;
    session_end(entry->session);
    entry->stopping_ns = clock_monotonic_ns();
    return session_table_arm(sessions);
}

int session_table_pause(SessionTable *sessions, SessionEntry *entry) {
    int r = session_pause(entry->session);

    if (r < 0)
        return r;
    entry->state = SESSION_PAUSED;
    entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    session_table_publish(sessions, "paused", entry, "its events do not count");
    return 0;
}

int session_table_resume(SessionTable *sessions, SessionEntry *entry) {
    int r = entry->awaits ? 0 : session_start(entry->session);

    if (r < 0)
        return r;
    entry->state = entry->awaits ? SESSION_STARTING : SESSION_ACTIVE;
    entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    /* The rate must not include the pause. */
    entry->points[0] = entry->points[1] = session_entry_point(entry, clock_monotonic_ns());
    session_table_publish(sessions, "resumed", entry, "its events count again");
    return 0;
}

#define LEFT_OPEN_TEXT                                                                             \
    "Its last segment was not finished, the disk did not answer or is full; it can be read when "  \
    "profd has recovered it"

static void session_table_finish(SessionTable *sessions, SessionEntry *entry, const char *text) {
    bool begins = entry->next == NEXT_BEGIN || entry->next == NEXT_BEGIN_PAUSED,
         is_over = entry->stop_at_ns > 0 && entry->stop_at_ns <= clock_ns(CLOCK_BOOTTIME);

    begins = begins && !is_over;
    entry->last = session_totals(entry->session);
    if (entry->last.is_left_open)
        text = strcpy(entry->error, LEFT_OPEN_TEXT);
    entry->session = session_close(entry->session, false);
    entry->state = SESSION_INACTIVE;
    entry->since_real_ns = 0;
    if (!begins) {
        entry->stop_at_ns = entry->duration_ns = 0;
        entry->next = entry->next == NEXT_REMOVE ? NEXT_REMOVE : NEXT_NOTHING;
    }
    entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    session_table_publish(sessions, "stopped", entry, text);
    if (begins)
        (void)session_table_begin(sessions, entry, entry->next == NEXT_BEGIN_PAUSED);
}

int session_table_end(SessionTable *sessions, SessionEntry *entry, SessionNext next) {
    bool begins = next == NEXT_BEGIN || next == NEXT_BEGIN_PAUSED;
    PdGapReason reason = begins ? PD_GAP_RELOADED : PD_GAP_STOPPED;
    int r = session_entry_records(entry) ? session_table_stop(sessions, entry, reason) : 0;

    entry->next = next;
    entry->stop_reason = NULL;
    return r;
}

void session_table_advance(SessionTable *sessions) {
    for (size_t i = sessions->n; i-- > 0;) {
        SessionEntry *entry = sessions->entries[i];

        if (entry->awaits)
            session_table_check_awaiting(sessions, entry);
        if (entry->trial)
            session_table_check_trial(sessions, entry);
        if (entry->state != SESSION_STOPPING)
            continue;
        if (clock_monotonic_ns() - entry->stopping_ns > GIVE_UP_SEC * NS_PER_SECOND)
            session_give_up(entry->session);
        else if (!session_has_ended(entry->session))
            continue;
        session_table_finish(sessions, entry, entry->stop_reason ?: "its segment is finished");
    }
    (void)session_table_open_next(sessions);
}

/* Uses the client's words: processes or threads. */
static const char *session_table_ended_text(const SessionConfig *config) {
    if (config->n_tids > 0)
        return config->n_tids == 1 ? "its thread has ended" : "its threads have ended";
    return config->n_pids == 1 ? "its process has ended" : "its processes have ended";
}

static void session_table_note_ended(SessionEntry *entry) {
    entry->stop_reason = session_table_ended_text(&entry->config);
    log_notice("Stopping session '%s', %s", entry->config.name, entry->stop_reason);
}

int session_table_stop_ended(SessionTable *sessions) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < sessions->n; i++) {
        SessionEntry *entry = sessions->entries[i];

        if (!session_entry_records(entry) || entry->awaits ||
            !sampler_has_ended(session_sampler(entry->session)))
            continue;
        session_table_note_ended(entry);
        r = session_table_stop(sessions, entry, PD_GAP_STOPPED);
    }
    return r;
}

static int session_table_stop_due(SessionTable *sessions) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME);
    int r = 0;

    for (size_t i = 0; r == 0 && i < sessions->n; i++) {
        SessionEntry *entry = sessions->entries[i];

        if (entry->stop_at_ns == 0 || entry->stop_at_ns > now || !session_entry_records(entry))
            continue;
        log_notice("Stopping session '%s', the time it was given is over", entry->config.name);
        r = session_table_stop(sessions, entry, PD_GAP_STOPPED);
    }
    return r;
}

static int session_table_retry_one(SessionTable *sessions, SessionEntry *entry, uint64_t now) {
    /* Its time is over before it could record. */
    if (entry->stop_at_ns > 0 && entry->stop_at_ns <= now) {
        entry->state = SESSION_INACTIVE;
        entry->stop_at_ns = 0;
        return 0;
    }
    /* Its processes ended while no recorder ran; do not retry, because their pids may be reused. */
    if (entry->runtime && entry->failed_part == SESSION_EVENTS && entry->failed_error == -ESRCH) {
        session_table_note_ended(entry);
        entry->state = SESSION_INACTIVE;
        return 0;
    }
    return sessions->options.on_retry(sessions->options.userdata, entry);
}

static int session_table_retry_due(SessionTable *sessions) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME);
    int r = 0;

    for (size_t i = 0; r == 0 && i < sessions->n; i++)
        if (sessions->entries[i]->state == SESSION_FAILED && !sessions->entries[i]->awaits &&
            sessions->entries[i]->retry_at_ns <= now)
            r = session_table_retry_one(sessions, sessions->entries[i], now);
        else if (session_table_lacks_events(sessions->entries[i]) && !sessions->entries[i]->trial &&
                 sessions->entries[i]->retry_at_ns <= now)
            (void)sampler_trial_begin(session_sampler(sessions->entries[i]->session),
                                      &sessions->entries[i]->trial);
    return r;
}

static int session_table_on_timer(void *userdata) {
    SessionTable *sessions = userdata;
    int r = session_table_stop_due(sessions);

    if (r == 0)
        r = session_table_retry_due(sessions);
    if (r < 0)
        return r;
    r = sessions->options.on_check(sessions->options.userdata);
    return r < 0 ? r : session_table_arm(sessions);
}
