/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session/session-table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/log.h"

/*
 * An entry exists before and after its session. The main thread never waits for a disk, so ending a
 * session takes two steps: its events are closed at once, and the rest is freed when its writer
 * reports that it is done. Starting takes two steps as well: helper threads open its events, one
 * session after the other, and then its folder; it records from then on. The time until a session
 * stops by itself includes suspend.
 */

enum {
    RATE_PERIOD_SEC = 10,
    CHECK_SEC = 1,
    GIVE_UP_SEC = 8,
    RETRY_FIRST_SEC = 1,
    RETRY_LAST_SEC = 60,
    ENDED_KEPT_MAX = 16,
};

#define WAIT_CHECK_NS 20000000ULL /* while the last build ids of a segment are read */

struct SessionTable {
    SessionTableOptions options;
    SessionEntry *entries[SESSION_TABLE_MAX];
    size_t n;
    LoopSource *timer;
    uint64_t stopping_ns; /* when the oldest ending session began to end; 0: none is ending */
};

static SessionEntry *session_entry_free(SessionEntry *entry) {
    sampler_opening_cancel(entry->opening);
    sampler_opening_cancel(entry->trial);
    json_decref(entry->settings);
    free(entry);
    return NULL;
}

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

size_t session_table_count(const SessionTable *sessions) {
    return sessions->n;
}

SessionEntry *session_table_at(const SessionTable *sessions, size_t i) {
    return sessions->entries[i];
}

SessionEntry *session_table_find(const SessionTable *sessions, const char *name) {
    for (size_t i = 0; i < sessions->n; i++)
        if (strcmp(sessions->entries[i]->config.name, name) == 0)
            return sessions->entries[i];
    return NULL;
}

SessionEntry *session_table_next(const SessionTable *sessions, size_t *at) {
    while (*at < sessions->n) {
        SessionEntry *entry = sessions->entries[(*at)++];

        if (session_entry_records(entry))
            return entry;
    }
    return NULL;
}

size_t session_table_n_sampling(const SessionTable *sessions) {
    size_t n = 0;

    for (size_t i = 0; i < sessions->n; i++)
        n += session_entry_samples(sessions->entries[i]);
    return n;
}

size_t session_table_n_open(const SessionTable *sessions) {
    size_t n = 0;

    for (size_t i = 0; i < sessions->n; i++)
        n += session_entry_records(sessions->entries[i]) ||
             session_entry_is_opening(sessions->entries[i]);
    return n;
}

int session_table_add(SessionTable *sessions, const SessionConfig *config, bool runtime,
                      json_t *settings, SessionEntry **ret) {
    SessionEntry *entry;

    if (sessions->n == SESSION_TABLE_MAX)
        return -E2BIG;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    entry->config = *config;
    entry->runtime = runtime;
    entry->settings = json_incref(settings);
    sessions->entries[sessions->n++] = *ret = entry;
    return 0;
}

void session_table_remove(SessionTable *sessions, SessionEntry *entry) {
    size_t i = 0;

    assert(!entry->session);
    while (sessions->entries[i] != entry)
        i++;
    sessions->n--;
    memmove(&sessions->entries[i], &sessions->entries[i + 1],
            (sessions->n - i) * sizeof(*sessions->entries));
    session_entry_free(entry);
}

static void session_table_publish(const SessionTable *sessions, const char *event,
                                  const SessionEntry *entry, const char *text) {
    sessions->options.on_event(sessions->options.userdata, event, entry, text);
}

/* A session with missing events is tried again, because a module may be loaded or a probe defined
 * later. */
static bool session_table_lacks_events(const SessionEntry *entry) {
    return session_entry_records(entry) && !entry->awaits &&
           plan_notes_left_out(sampler_notes(session_sampler(entry->session)));
}

/* Arms the timer for the next stop or retry, or to check the sessions that are ending. */
static int session_table_arm(SessionTable *sessions) {
    uint64_t now = clock_ns(CLOCK_BOOTTIME), next = UINT64_MAX;

    for (size_t i = 0; i < sessions->n; i++) {
        const SessionEntry *entry = sessions->entries[i];

        if (entry->state == SESSION_STOPPING)
            next = MIN(next, now + (session_waits(entry->session) ? WAIT_CHECK_NS
                                                                  : CHECK_SEC * NS_PER_SECOND));
        else if (entry->stop_at_ns > 0 && session_entry_records(entry))
            next = MIN(next, entry->stop_at_ns);
        else if ((entry->state == SESSION_FAILED && !entry->awaits) ||
                 (session_table_lacks_events(entry) && !entry->trial))
            next = MIN(next, entry->retry_at_ns);
    }
    return next == UINT64_MAX ? 0
                              : loop_trigger_after(sessions->timer, next > now ? next - now : 0);
}

void session_table_set_host(SessionTable *sessions, const SessionHost *host) {
    sessions->options.host = *host;
}

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

static void session_table_retry_later(SessionEntry *entry) {
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

/* Opens one session at a time: the remaining memory for rings is only known when the ones before
 * are open. */
static int session_table_open_next(SessionTable *sessions) {
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
    if (entry->duration_ns > 0)
        r = session_table_stop_after(sessions, entry, entry->duration_ns);
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

static void session_table_check_awaiting(SessionTable *sessions, SessionEntry *entry) {
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

bool session_table_is_changing(const SessionTable *sessions) {
    for (size_t i = 0; i < sessions->n; i++) {
        const SessionEntry *entry = sessions->entries[i];

        if (entry->awaits || entry->trial || (entry->session && entry->state == SESSION_STOPPING))
            return true;
    }
    return false;
}

int session_table_stop_after(SessionTable *sessions, SessionEntry *entry, uint64_t duration_ns) {
    entry->stop_at_ns = duration_ns > 0 ? clock_ns(CLOCK_BOOTTIME) + duration_ns : 0;
    return session_table_arm(sessions);
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
    entry->stop_at_ns = entry->duration_ns = 0;
    entry->awaits = false;
    session_end(entry->session);
    if (sessions->stopping_ns == 0)
        sessions->stopping_ns = clock_monotonic_ns();
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

static void session_table_finish(SessionTable *sessions, SessionEntry *entry, const char *text) {
    SessionNext next = entry->next;

    entry->last = session_totals(entry->session);
    entry->session = session_close(entry->session, false);
    entry->state = SESSION_INACTIVE;
    entry->since_real_ns = entry->stop_at_ns = 0;
    entry->state_real_ns = clock_ns(CLOCK_REALTIME);
    session_table_publish(sessions, "stopped", entry, text);
    if (next == NEXT_BEGIN || next == NEXT_BEGIN_PAUSED)
        (void)session_table_begin(sessions, entry, next == NEXT_BEGIN_PAUSED);
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
    bool gives_up = sessions->stopping_ns > 0 &&
                    clock_monotonic_ns() - sessions->stopping_ns > GIVE_UP_SEC * NS_PER_SECOND;
    bool left = false;

    for (size_t i = sessions->n; i-- > 0;) {
        SessionEntry *entry = sessions->entries[i];

        if (entry->awaits)
            session_table_check_awaiting(sessions, entry);
        if (entry->trial)
            session_table_check_trial(sessions, entry);
        if (entry->state != SESSION_STOPPING)
            continue;
        if (gives_up)
            session_give_up(entry->session);
        else if (!session_has_ended(entry->session)) {
            left = true;
            continue;
        }
        session_table_finish(sessions, entry, entry->stop_reason ?: "its segment is finished");
    }
    if (!left)
        sessions->stopping_ns = 0;
    (void)session_table_open_next(sessions);
}

/* New entries are appended, so counting from the end keeps the newest ones. */
void session_table_forget_ended(SessionTable *sessions) {
    size_t kept = 0;

    for (size_t i = sessions->n; i-- > 0;) {
        SessionEntry *entry = sessions->entries[i];
        bool goes = entry->runtime || entry->next == NEXT_REMOVE;

        if (session_entry_has_ended(entry) && entry->next != NEXT_REMOVE)
            goes = ++kept > ENDED_KEPT_MAX;
        if (goes && entry->state == SESSION_INACTIVE)
            session_table_remove(sessions, entry);
    }
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

void session_table_note_rates(SessionTable *sessions, uint64_t now_ns) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(sessions, &at));) {
        if (now_ns - entry->points[1].at_ns < RATE_PERIOD_SEC * NS_PER_SECOND)
            continue;
        entry->points[0] = entry->points[1];
        entry->points[1] = session_entry_point(entry, now_ns);
    }
}
