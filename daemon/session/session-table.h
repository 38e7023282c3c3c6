/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All sessions: those of the configuration, whether they record or not, and those that Start()
 * began. This file starts, pauses and ends them. It knows neither the clients that ask for a change
 * nor those that are notified of it.
 */

#include "loop/loop.h"
#include "session/session-entry.h"

enum { SESSION_TABLE_MAX = 2 * CONFIG_SESSIONS_MAX };

typedef struct SessionTableOptions {
    Loop *loop;
    SessionHost host;
    /* Moves all that the rings hold into segments; no sweep is running afterwards. */
    int (*drain)(void *userdata);
    /* Called when a failed session is to be tried again, with session_table_retry(). */
    int (*on_retry)(void *userdata, SessionEntry *entry);
    /* `event` is a name that Monitor() uses. */
    void (*on_event)(void *userdata, const char *event, const SessionEntry *entry,
                     const char *text);
    /* Called at intervals while a session ends; it shall call session_table_advance(). */
    int (*on_check)(void *userdata);
    void *userdata;
} SessionTableOptions;

typedef struct SessionTable SessionTable;

int session_table_new(const SessionTableOptions *options, SessionTable **ret);
/* Ends all recording sessions and waits for them. */
SessionTable *session_table_free(SessionTable *sessions, bool keep_rings);

size_t session_table_count(const SessionTable *sessions);
SessionEntry *session_table_at(const SessionTable *sessions, size_t i);
/* NULL: there is none. */
SessionEntry *session_table_find(const SessionTable *sessions, const char *name);
/* Iterates over the sessions that take part in sweeps: *at is 0 at first; returns NULL after the
 * last. */
SessionEntry *session_table_next(const SessionTable *sessions, size_t *at);
/* The number of sessions that take samples now. */
size_t session_table_n_sampling(const SessionTable *sessions);
/* The number of sessions whose events are open or opening. */
size_t session_table_n_open(const SessionTable *sessions);

/* Adds an inactive session. `settings` is borrowed. -E2BIG: there are too many sessions. */
int session_table_add(SessionTable *sessions, const SessionConfig *config, bool runtime,
                      json_t *settings, SessionEntry **ret);
/* The session must not be open. */
void session_table_remove(SessionTable *sessions, SessionEntry *entry);
/* Sets what sessions need besides the sampler; call it before the first one begins. */
void session_table_set_host(SessionTable *sessions, const SessionHost *host);
/* Opens and starts its events; the rings keep the samples until session_table_begin(). */
int session_table_open(SessionTable *sessions, SessionEntry *entry, bool paused);
/* Call it between two sweeps. A failure is logged and kept in the entry, which is retried from time
 * to time. The session records once its events are open and the disk has answered, in
 * session_table_advance(). */
int session_table_begin(SessionTable *sessions, SessionEntry *entry, bool paused);
/* Retries a failed session; a failure that was logged before is not logged again. */
int session_table_retry(SessionTable *sessions, SessionEntry *entry);
/* Makes a session inactive that is opening, has ended, or has failed. */
void session_table_abandon(SessionTable *sessions, SessionEntry *entry);
/* Waits for the disk; call it before the main loop runs. */
int session_table_await(SessionTable *sessions, SessionEntry *entry);
/* Whether some session is still starting or ending. If so, session_table_advance() must be called
 * when a writer reports progress. */
bool session_table_is_changing(const SessionTable *sessions);
/* Counts from now on; 0: it never stops by itself. */
int session_table_stop_after(SessionTable *sessions, SessionEntry *entry, uint64_t duration_ns);
/* Arms the timer for the next stop or retry, or to check the sessions that are ending. Call it also
 * when the machine has slept, which the timer does not notice. */
int session_table_arm(SessionTable *sessions);
/* Begins to end it, with this reason for the gap; session_table_advance() completes that. */
int session_table_stop(SessionTable *sessions, SessionEntry *entry, PdGapReason reason);
int session_table_pause(SessionTable *sessions, SessionEntry *entry);
int session_table_resume(SessionTable *sessions, SessionEntry *entry);
/* Begins to end it if it records, and sets what happens after that, also if it is ending
 * already. */
int session_table_end(SessionTable *sessions, SessionEntry *entry, SessionNext next);
/* Begins to end the sessions whose processes have all ended. */
int session_table_stop_ended(SessionTable *sessions);
/* Completes pending starts and ends as far as events and disks allow. Call it between two sweeps,
 * when a writer reports progress. */
void session_table_advance(SessionTable *sessions);
/* Removes sessions of Start() that a client stopped. Of those that stopped by themselves the newest
 * ones stay listed, with the reason, until a client stops them or starts one of the same name. */
void session_table_forget_ended(SessionTable *sessions);
/* Notes each session's sample count every few seconds, for session_entry_rate(). */
void session_table_note_rates(SessionTable *sessions, uint64_t now_ns);
