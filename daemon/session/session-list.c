/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "session/session-table-private.h"
#include "util/clock.h"

/* The entries of the session table, and when the next one of them needs attention. */

enum { RATE_PERIOD_SEC = 10, CHECK_SEC = 1, ENDED_KEPT_MAX = 16 };

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

SessionEntry *session_entry_free(SessionEntry *entry) {
    sampler_opening_cancel(entry->opening);
    sampler_opening_cancel(entry->trial);
    json_decref(entry->settings);
    free(entry);
    return NULL;
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

void session_table_publish(const SessionTable *sessions, const char *event,
                           const SessionEntry *entry, const char *text) {
    sessions->options.on_event(sessions->options.userdata, event, entry, text);
}

bool session_table_lacks_events(const SessionEntry *entry) {
    return session_entry_records(entry) && !entry->awaits &&
           plan_notes_left_out(sampler_notes(session_sampler(entry->session)));
}

int session_table_arm(SessionTable *sessions) {
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

int session_table_stop_after(SessionTable *sessions, SessionEntry *entry, uint64_t duration_ns) {
    entry->stop_at_ns = duration_ns > 0 ? clock_ns(CLOCK_BOOTTIME) + duration_ns : 0;
    return session_table_arm(sessions);
}

bool session_table_is_changing(const SessionTable *sessions) {
    for (size_t i = 0; i < sessions->n; i++) {
        const SessionEntry *entry = sessions->entries[i];

        if (entry->awaits || entry->trial || (entry->session && entry->state == SESSION_STOPPING))
            return true;
    }
    return false;
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

void session_table_note_rates(SessionTable *sessions, uint64_t now_ns) {
    SessionEntry *entry;

    for (size_t at = 0; (entry = session_table_next(sessions, &at));) {
        if (now_ns - entry->points[1].at_ns < RATE_PERIOD_SEC * NS_PER_SECOND)
            continue;
        entry->points[0] = entry->points[1];
        entry->points[1] = session_entry_point(entry, now_ns);
    }
}
