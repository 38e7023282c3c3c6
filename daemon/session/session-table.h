/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * All sessions that there are: those of the configuration, whether they record or not, and those
 * that Start() began. Here they begin, rest and end; who asks, and who is told, is not known here.
 */

#include <jansson.h>

#include "loop/loop.h"
#include "session/session.h"

enum { MEMBER_ERROR_MAX = 512, MEMBER_TEXT_MAX = 256, ROSTER_MAX = 2 * CONFIG_SESSIONS_MAX };

typedef enum MemberState {
    MEMBER_INACTIVE,
    MEMBER_STARTING, /* nothing was taken yet: its events or its folder may be awaited */
    MEMBER_ACTIVE,
    MEMBER_PAUSED,
    MEMBER_STOPPING, /* its last segment is being finished */
    MEMBER_FAILED,
} MemberState;

/* What follows when a session has ended. */
typedef enum MemberNext {
    NEXT_NOTHING,
    NEXT_BEGIN, /* it begins again, by its configuration of that time */
    NEXT_BEGIN_PAUSED,
    NEXT_REMOVE,
} MemberNext;

/* How much was sampled by when. */
typedef struct MemberPoint {
    uint64_t at_ns, samples;
} MemberPoint;

typedef struct Member {
    SessionConfig config;
    MemberState state;
    bool runtime;     /* begun by Start(), and gone when it is stopped */
    Session *session; /* NULL when inactive or failed */
    json_t *settings; /* what Start() was given; NULL: nothing */
    char describe[MEMBER_TEXT_MAX];
    bool sensitive;
    SessionTotals last;           /* of a session that has ended */
    uint64_t since_real_ns;       /* since when its events are open; 0: they are not */
    uint64_t state_real_ns;       /* since when it is in its state; 0: since profd began */
    uint64_t starting_ns;         /* CLOCK_MONOTONIC; since when it is to record */
    uint64_t stop_at_ns;          /* CLOCK_BOOTTIME; 0: when it is told to */
    const char *stop_reason;      /* why it stopped by itself; NULL: it did not */
    char error[MEMBER_ERROR_MAX]; /* why it failed */
    char error_logged[MEMBER_ERROR_MAX];
    uint64_t retry_at_ns, retry_delay_ns; /* CLOCK_BOOTTIME; of one that failed or lacks events */
    bool retry_paused;                    /* it was to begin paused */
    SessionPart failed_part;
    int failed_error;
    bool awaits;           /* its events, and then its folder in the store; until then they rest */
    SamplerOpening *trial; /* of the events that it lacks */
    SamplerOpening *opening; /* NULL: it is another one's turn, or its events are open */
    bool was_opened;         /* by roster_open(): its events do not rest */
    uint64_t duration_ns;    /* from when it records; 0: until it is stopped */
    MemberNext next;
    MemberPoint points[2]; /* for the rate: an older and a newer one */
    uint64_t lost_told, rotations_told;
    char ended_path[CONFIG_PATH_MAX]; /* of the segment before the open one */
} Member;

typedef struct RosterOptions {
    Loop *loop;
    SessionHost host;
    /* All that the rings hold goes to its segments, and then no sweep runs. */
    int (*drain)(void *userdata);
    /* The time has come to try one that failed again, by roster_retry(). */
    int (*on_retry)(void *userdata, Member *member);
    /* event: as Monitor() names it. */
    void (*on_event)(void *userdata, const char *event, const Member *member, const char *text);
    /* A while has passed while one ends: roster_look() is due. */
    int (*on_look)(void *userdata);
    void *userdata;
} RosterOptions;

typedef struct Roster Roster;

int roster_new(const RosterOptions *options, Roster **ret);
/* Ends all that record and waits for them. */
Roster *roster_free(Roster *roster, bool keep_rings);

size_t roster_count(const Roster *roster);
Member *roster_at(const Roster *roster, size_t i);
/* NULL: there is none. */
Member *roster_find(const Roster *roster, const char *name);
/* Those that are in sweeps, in turn: *at is 0 at first; NULL after the last. */
Member *roster_next(const Roster *roster, size_t *at);
/* How many take samples now. */
size_t roster_n_sampling(const Roster *roster);
/* How many have events open. */
size_t roster_n_open(const Roster *roster);
bool member_records(const Member *member);
/* It began, and its events are not open yet. */
bool member_is_opening(const Member *member);
/* Whether samples are taken now: it is not paused, and its control group and a CPU of it are there.
 */
bool member_samples(const Member *member);
/* It was begun by Start() and stopped by itself. */
bool member_has_ended(const Member *member);
/* All reasons why it is less than its configuration asks for; a set of Degraded. */
unsigned member_degraded(const Member *member);
const char *member_state_name(MemberState state);
/* -EINVAL: there is no such state. */
int member_state_from_name(const char *name, MemberState *ret);

/* Inactive at first. Settings are borrowed. -E2BIG: there are too many. */
int roster_add(Roster *roster, const SessionConfig *config, bool runtime, json_t *settings,
               Member **ret);
/* Not one that is open. */
void roster_remove(Roster *roster, Member *member);
/* What sessions need beyond the sampler, before the first one begins. */
void roster_set_host(Roster *roster, const SessionHost *host);
/* Its events begin, and what they say is held by their rings until roster_begin(). */
int roster_open(Roster *roster, Member *member, bool paused);
/* Between two sweeps. What fails is logged, and kept in the member, which then has failed and is
 * tried again from time to time. It records when its events are open and the disk has answered:
 * roster_look() sees to it. */
int roster_begin(Roster *roster, Member *member, bool paused);
/* The same for one that failed, which logs only what it did not log before. */
int roster_retry(Roster *roster, Member *member);
/* One that is opening, has ended, or failed and is tried again, is inactive from now on. */
void roster_abandon(Roster *roster, Member *member);
/* Waits for the disk; before the main loop runs. */
int roster_await(Roster *roster, Member *member);
/* Something begins or ends and is not there yet: roster_look() is due when a writer has a word. */
bool roster_is_changing(const Roster *roster);
/* From now on; 0: never by itself. */
int roster_stop_after(Roster *roster, Member *member, uint64_t duration_ns);
/* Begins to end it, for this reason; roster_look() sees to the rest. */
int roster_stop(Roster *roster, Member *member, PdGapReason reason);
int roster_pause(Roster *roster, Member *member);
int roster_resume(Roster *roster, Member *member);
/* Likewise, where it records; `next` follows, also where it is ending already. */
int roster_end(Roster *roster, Member *member, MemberNext next);
/* Those whose processes have ended begin to end. */
int roster_stop_ended(Roster *roster);
/* Those that wait for their events or the disk and may go on by now, and those that began to end
 * and are finished by now; between two sweeps, when a writer has a word. */
void roster_look(Roster *roster);
/* Those of Start() that somebody stopped. Of those that stopped by themselves the last ones stay
 * listed, with the reason, until they are stopped or begun again by their name. */
void roster_forget_ended(Roster *roster);
SessionTotals member_totals(const Member *member);
/* Remembers how far each has come, once in a while. */
void roster_note_rates(Roster *roster, uint64_t now_ns);
double member_rate(const Member *member, uint64_t now_ns);
