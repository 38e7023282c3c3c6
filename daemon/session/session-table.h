/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All sessions that there are: those of the configuration, whether they record or not, and those
 * that Start() began. Here they begin, rest and end; who asks, and who is told, is not known here.
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
    SESSION_STARTING, /* nothing was taken yet: its events or its folder may be awaited */
    SESSION_ACTIVE,
    SESSION_PAUSED,
    SESSION_STOPPING, /* its last segment is being finished */
    SESSION_FAILED,
} SessionState;

/* What follows when a session has ended. */
typedef enum SessionNext {
    NEXT_NOTHING,
    NEXT_BEGIN, /* it begins again, by its configuration of that time */
    NEXT_BEGIN_PAUSED,
    NEXT_REMOVE,
} SessionNext;

/* How much was sampled by when. */
typedef struct SessionPoint {
    uint64_t at_ns, samples;
} SessionPoint;

typedef struct SessionEntry {
    SessionConfig config;
    SessionState state;
    bool runtime;     /* begun by Start(), and gone when it is stopped */
    Session *session; /* NULL when inactive or failed */
    json_t *settings; /* what Start() was given; NULL: nothing */
    char describe[SESSION_TEXT_MAX];
    bool sensitive;
    SessionTotals last;            /* of a session that has ended */
    uint64_t since_real_ns;        /* since when its events are open; 0: they are not */
    uint64_t state_real_ns;        /* since when it is in its state; 0: since profd began */
    uint64_t starting_ns;          /* CLOCK_MONOTONIC; since when it is to record */
    uint64_t stop_at_ns;           /* CLOCK_BOOTTIME; 0: when it is told to */
    const char *stop_reason;       /* why it stopped by itself; NULL: it did not */
    char error[SESSION_ERROR_MAX]; /* why it failed */
    char error_logged[SESSION_ERROR_MAX];
    uint64_t retry_at_ns, retry_delay_ns; /* CLOCK_BOOTTIME; of one that failed or lacks events */
    bool retry_paused;                    /* it was to begin paused */
    SessionPart failed_part;
    int failed_error;
    bool awaits;           /* its events, and then its folder in the store; until then they rest */
    SamplerOpening *trial; /* of the events that it lacks */
    SamplerOpening *opening; /* NULL: it is another one's turn, or its events are open */
    bool was_opened;         /* by session_table_open(): its events do not rest */
    uint64_t duration_ns;    /* from when it records; 0: until it is stopped */
    SessionNext next;
    SessionPoint points[2]; /* for the rate: an older and a newer one */
    uint64_t lost_told, rotations_told;
    char ended_path[CONFIG_PATH_MAX]; /* of the segment before the open one */
} SessionEntry;

typedef struct SessionTableOptions {
    Loop *loop;
    SessionHost host;
    /* All that the rings hold goes to its segments, and then no sweep runs. */
    int (*drain)(void *userdata);
    /* The time has come to try one that failed again, by session_table_retry(). */
    int (*on_retry)(void *userdata, SessionEntry *entry);
    /* event: as Monitor() names it. */
    void (*on_event)(void *userdata, const char *event, const SessionEntry *entry,
                     const char *text);
    /* A while has passed while one ends: session_table_look() is due. */
    int (*on_look)(void *userdata);
    void *userdata;
} SessionTableOptions;

typedef struct SessionTable SessionTable;

int session_table_new(const SessionTableOptions *options, SessionTable **ret);
/* Ends all that record and waits for them. */
SessionTable *session_table_free(SessionTable *sessions, bool keep_rings);

size_t session_table_count(const SessionTable *sessions);
SessionEntry *session_table_at(const SessionTable *sessions, size_t i);
/* NULL: there is none. */
SessionEntry *session_table_find(const SessionTable *sessions, const char *name);
/* Those that are in sweeps, in turn: *at is 0 at first; NULL after the last. */
SessionEntry *session_table_next(const SessionTable *sessions, size_t *at);
/* How many take samples now. */
size_t session_table_n_sampling(const SessionTable *sessions);
/* How many have events open. */
size_t session_table_n_open(const SessionTable *sessions);
bool session_entry_records(const SessionEntry *entry);
/* It began, and its events are not open yet. */
bool session_entry_is_opening(const SessionEntry *entry);
/* Whether samples are taken now: it is not paused, and its control group and a CPU of it are there.
 */
bool session_entry_samples(const SessionEntry *entry);
/* It was begun by Start() and stopped by itself. */
bool session_entry_has_ended(const SessionEntry *entry);
/* All reasons why it is less than its configuration asks for; a set of Degraded. */
unsigned session_entry_degraded(const SessionEntry *entry);
const char *session_state_name(SessionState state);
/* -EINVAL: there is no such state. */
int session_state_from_name(const char *name, SessionState *ret);

/* Inactive at first. Settings are borrowed. -E2BIG: there are too many. */
int session_table_add(SessionTable *sessions, const SessionConfig *config, bool runtime,
                      json_t *settings, SessionEntry **ret);
/* Not one that is open. */
void session_table_remove(SessionTable *sessions, SessionEntry *entry);
/* What sessions need beyond the sampler, before the first one begins. */
void session_table_set_host(SessionTable *sessions, const SessionHost *host);
/* Its events begin, and what they say is held by their rings until session_table_begin(). */
int session_table_open(SessionTable *sessions, SessionEntry *entry, bool paused);
/* Between two sweeps. What fails is logged, and kept in the entry, which then has failed and is
 * tried again from time to time. It records when its events are open and the disk has answered:
 * session_table_look() sees to it. */
int session_table_begin(SessionTable *sessions, SessionEntry *entry, bool paused);
/* The same for one that failed, which logs only what it did not log before. */
int session_table_retry(SessionTable *sessions, SessionEntry *entry);
/* One that is opening, has ended, or failed and is tried again, is inactive from now on. */
void session_table_abandon(SessionTable *sessions, SessionEntry *entry);
/* Waits for the disk; before the main loop runs. */
int session_table_await(SessionTable *sessions, SessionEntry *entry);
/* Something begins or ends and is not there yet: session_table_look() is due when a writer has a
 * word. */
bool session_table_is_changing(const SessionTable *sessions);
/* From now on; 0: never by itself. */
int session_table_stop_after(SessionTable *sessions, SessionEntry *entry, uint64_t duration_ns);
/* Begins to end it, for this reason; session_table_look() sees to the rest. */
int session_table_stop(SessionTable *sessions, SessionEntry *entry, PdGapReason reason);
int session_table_pause(SessionTable *sessions, SessionEntry *entry);
int session_table_resume(SessionTable *sessions, SessionEntry *entry);
/* Likewise, where it records; `next` follows, also where it is ending already. */
int session_table_end(SessionTable *sessions, SessionEntry *entry, SessionNext next);
/* Those whose processes have ended begin to end. */
int session_table_stop_ended(SessionTable *sessions);
/* Those that wait for their events or the disk and may go on by now, and those that began to end
 * and are finished by now; between two sweeps, when a writer has a word. */
void session_table_look(SessionTable *sessions);
/* Those of Start() that somebody stopped. Of those that stopped by themselves the last ones stay
 * listed, with the reason, until they are stopped or begun again by their name. */
void session_table_forget_ended(SessionTable *sessions);
SessionTotals session_entry_totals(const SessionEntry *entry);
/* Remembers how far each has come, once in a while. */
void session_table_note_rates(SessionTable *sessions, uint64_t now_ns);
double session_entry_rate(const SessionEntry *entry, uint64_t now_ns);
