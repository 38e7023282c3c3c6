/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All sessions: those of the configuration, whether they record or not, and those that Start()
 * began. This file starts, pauses and ends them. It knows neither the clients that ask for a change
 * nor those that are notified of it.
 */

#include <jansson.h>

#include "loop/loop.h"
#include "session/session.h"

enum {
    SESSION_ERROR_MAX = 512,
    SESSION_TEXT_MAX = 256,
    SESSION_TABLE_MAX = 2 * CONFIG_SESSIONS_MAX
};

typedef enum SessionState {
    SESSION_INACTIVE,
    SESSION_STARTING, /* no sample taken yet; its events or its folder may still be opening */
    SESSION_ACTIVE,
    SESSION_PAUSED,
    SESSION_STOPPING, /* its last segment is being finished */
    SESSION_FAILED,
} SessionState;

/* What happens when a session has ended. */
typedef enum SessionNext {
    NEXT_NOTHING,
    NEXT_BEGIN, /* start it again with its configuration at that time */
    NEXT_BEGIN_PAUSED,
    NEXT_REMOVE,
} SessionNext;

/* The number of samples at a moment. */
typedef struct SessionPoint {
    uint64_t at_ns, samples;
} SessionPoint;

typedef struct SessionEntry {
    SessionConfig config;
    SessionState state;
    bool runtime;     /* begun by Start(); removed when it is stopped */
    Session *session; /* NULL when inactive or failed */
    json_t *settings; /* what Start() was given; may be NULL */
    char describe[SESSION_TEXT_MAX];
    bool sensitive;
    SessionTotals last;            /* the totals of the last run, after it has ended */
    uint64_t since_real_ns;        /* when its events were opened; 0: they are not open */
    uint64_t state_real_ns;        /* when it entered its state; 0: when profd began */
    uint64_t starting_ns;          /* CLOCK_MONOTONIC; when it was asked to record */
    uint64_t stop_at_ns;           /* CLOCK_BOOTTIME; 0: it does not stop by itself */
    const char *stop_reason;       /* why it stopped by itself; NULL: it did not */
    char error[SESSION_ERROR_MAX]; /* why it failed */
    char error_logged[SESSION_ERROR_MAX];
    uint64_t retry_at_ns, retry_delay_ns; /* CLOCK_BOOTTIME; for one that failed or lacks events */
    bool retry_paused;                    /* whether the retry begins it paused */
    SessionPart failed_part;
    int failed_error;
    bool awaits;             /* its events or its folder are still opening; until then nothing is
                              * recorded */
    SamplerOpening *trial;   /* trial opening of the events that it lacks */
    SamplerOpening *opening; /* NULL: it waits for another session's opening, or its events are
                              * open */
    bool was_opened;         /* session_table_open() started its events already */
    uint64_t duration_ns;    /* how long it records, counted from its start; 0: until it is
                              * stopped */
    SessionNext next;
    SessionPoint points[2]; /* an older and a newer point, for the rate */
    uint64_t lost_published, rotations_published;
    char ended_path[CONFIG_PATH_MAX]; /* path of the segment before the open one */
} SessionEntry;

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
bool session_entry_records(const SessionEntry *entry);
/* It was started, and its events are not open yet. */
bool session_entry_is_opening(const SessionEntry *entry);
/* Whether it takes samples now: it is not paused, and its control group and at least one of its
 * CPUs exist. */
bool session_entry_samples(const SessionEntry *entry);
/* It was begun by Start() and has stopped by itself. */
bool session_entry_has_ended(const SessionEntry *entry);
/* All reasons why it records less than its configuration asks for; a set of Degraded. */
unsigned session_entry_degraded(const SessionEntry *entry);
const char *session_state_name(SessionState state);
/* -EINVAL: no state has that name. */
int session_state_from_name(const char *name, SessionState *ret);

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
SessionTotals session_entry_totals(const SessionEntry *entry);
/* Notes each session's sample count every few seconds, for session_entry_rate(). */
void session_table_note_rates(SessionTable *sessions, uint64_t now_ns);
double session_entry_rate(const SessionEntry *entry, uint64_t now_ns);
