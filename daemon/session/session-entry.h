/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One entry of the table of sessions: its configuration, its state and its running session. */

#include <jansson.h>

#include "session/session.h"

enum { SESSION_ERROR_MAX = 512, SESSION_TEXT_MAX = 256 };

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

/* What was recorded up to a moment. */
typedef struct SessionPoint {
    uint64_t at_ns, samples, stored_bytes;
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
    bool is_waiting;               /* active, but its control group does not exist */
    bool knows_waiting;            /* the above was noted once */
    uint64_t starting_ns;          /* CLOCK_MONOTONIC; when it was asked to record */
    uint64_t stop_at_ns;           /* CLOCK_BOOTTIME; 0: it does not stop by itself */
    uint64_t stopping_ns;          /* CLOCK_MONOTONIC; when it began to end */
    const char *stop_reason;       /* why it stopped by itself; NULL: it did not */
    char error[SESSION_ERROR_MAX]; /* why it failed, or that its last segment is not finished */
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
    SessionPoint points[2]; /* an older and a newer point, for rates */
    uint64_t lost_published, rotations_published;
    char ended_path[CONFIG_PATH_MAX]; /* path of the segment before the open one */
} SessionEntry;

bool session_entry_records(const SessionEntry *entry);
/* It was started, and its events are not open yet. */
bool session_entry_is_opening(const SessionEntry *entry);
/* Whether it takes samples now: it is not paused, and its control group and at least one of its
 * CPUs exist. */
bool session_entry_samples(const SessionEntry *entry);
/* It is meant to record, and waits for its control group. */
bool session_entry_waits(const SessionEntry *entry);
/* Notes when it began to wait, or ended that. */
void session_entry_note_waiting(SessionEntry *entry);
/* It was begun by Start() and has stopped by itself. */
bool session_entry_has_ended(const SessionEntry *entry);
/* All reasons why it records less than its configuration asks for; a set of Degraded. */
unsigned session_entry_degraded(const SessionEntry *entry);
const char *session_state_name(SessionState state);
/* -EINVAL: no state has that name. */
int session_state_from_name(const char *name, SessionState *ret);
SessionTotals session_entry_totals(const SessionEntry *entry);
double session_entry_rate(const SessionEntry *entry, uint64_t now_ns);
/* Bytes that are written into its segments in a second. */
double session_entry_byte_rate(const SessionEntry *entry, uint64_t now_ns);
SessionPoint session_entry_point(const SessionEntry *entry, uint64_t now_ns);
