/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A session connects its rings in the sampler, its position in the history and its segments in the
 * store. It turns the samples of a sweep into batches for the writer, puts the side-band that they
 * need before them, and decides when a segment ends.
 */

#include "capture/sampler/sampler.h"
#include "process/history/history.h"
#include "session/byte-rate.h"
#include "binary/binary-watch.h"
#include "stack/unwinder.h"
#include "store/writer/store-session.h"
#include "tracker/tracker.h"
#include "util/macro.h"

/* What all sessions of a recorder share; all pointers are borrowed. */
typedef struct SessionHost {
    Sampler *sampler;
    Tracker *tracker;
    Store *store;
    ByteRate *rate; /* of all sessions together */
    Unwinder *unwinder;
    BinaryWatch *binaries; /* NULL: none */
} SessionHost;

typedef struct Session Session;

/* Which part of the session failed. */
typedef enum SessionPart { SESSION_EVENTS, SESSION_STORE } SessionPart;

/* Opens only the events; they can be started or paused afterwards. Logs its failures. */
int session_new(Sampler *sampler, const SessionConfig *config, Session **ret);
/* The same with events that are open already; takes ownership of them. */
int session_new_opened(SamplerSession *sampler, const SessionConfig *config, Session **ret);
/* Attaches the session to the history and the store. The store has to wait for a disk:
 * session_is_open() returns whether its folder is ready. Resumes after the point that the previous
 * recorder reached. Logs its failures. */
int session_attach(Session *session, const SessionHost *host);
/* 1: it may record; 0: the disk has not answered yet; a negative errno: it can never record
 * (logged). */
int session_is_open(Session *session);
/* Waits until it may record, and reads what the previous recorder wrote last. Call it before the
 * main loop runs. */
int session_await(Session *session);
/* Finishes its segment. `keep_rings`: the keeper keeps the rings for the next recorder. */
Session *session_close(Session *session, bool keep_rings);
/* Closes its events and begins to finish its segment, without waiting; sweeps skip the session from
 * now on. session_close() must follow; it does not block once session_has_ended() is true. */
void session_end(Session *session);
bool session_has_ended(Session *session);
/* Drops everything that the disk has not taken by now. */
void session_give_up(Session *session);
/* Begins to finish its segment and waits for it; call it after the main loop has ended. */
void session_wait(Session *session);

/* No sample that another recorder left in the rings is older than this; UINT64_MAX: there is
 * none. */
uint64_t session_oldest_ns(const Session *session);
SamplerSession *session_sampler(const Session *session);
int session_start(Session *session);
/* Disables its events. Samples that the rings hold are still taken, and age alone ends no
 * segment. */
int session_pause(Session *session);
/* Disables its events for good and begins a gap for this reason. */
void session_leave(Session *session, PdGapReason reason);
/* Begins a gap for this reason at at_ns (CLOCK_MONOTONIC); session_end_gap() ends it. Gaps of
 * different reasons may overlap; a second gap of the same reason is ignored while the first one
 * lasts. */
void session_begin_gap(Session *session, PdGapReason reason, uint64_t at_ns);
void session_end_gap(Session *session, PdGapReason reason, uint64_t at_ns);
/* Applies new limits, which need no new events. */
void session_configure(Session *session, const SessionConfig *config);

/* Takes the samples of a sweep and adds the side-band that they need. 1: they are safe, so their
 * space in the ring is free. */
int session_take(Session *session, const Batch *batch);
/* Takes the samples that the previous recorder had unwound and not written; call it in each sweep
 * when all side-band is taken. */
int session_take_left(Session *session);
/* Call it when the sweep that began at start_ns is complete, also in the history. Queues what was
 * gathered. */
int session_end_sweep(Session *session, uint64_t start_ns, const ClockAnchor *clock, bool listens);
/* Has the daemon woken up when the sweeps that have ended are written. */
void session_listen(Session *session);
/* Gives the space of written samples back to the kernel; call it before a sweep. */
void session_give_back(Session *session);
int session_lost(Session *session, uint64_t id, unsigned cpu, uint64_t lost, uint64_t time_ns);
/* Adds facts to the manifest; userdata is the session. */
int session_note(void *userdata, const SegmentFacts *facts);

typedef enum RotateReason {
    ROTATE_NOT,
    ROTATE_TIME,
    ROTATE_SIZE,
    ROTATE_CLOCK,
    ROTATE_CPUS,
    ROTATE_STORE,
    ROTATE_GAP,
    ROTATE_ASKED,
} RotateReason;

/* Reason to rotate now, or ROTATE_NOT. */
RotateReason session_is_due(const Session *session, const ClockAnchor *clock);
/* Whether mappings in its segment still wait for their build ids, which takes a few seconds at
 * most. */
bool session_waits(const Session *session);
/* Whether the segment may end now for that reason. A segment that waits for build ids ends a little
 * later, unless the reason allows no delay. */
bool session_may_rotate(Session *session, RotateReason reason, const ClockAnchor *clock);
/* Ends the segment as soon as session_may_rotate() allows. */
void session_ask_rotation(Session *session);
/* Begins the next segment; call it only between two sweeps. */
int session_rotate(Session *session, RotateReason reason, const ClockAnchor *clock);
/* How many rotations were requested, and for how many of them the previous segment is finished. */
typedef struct SessionRotations {
    uint64_t asked, finished;
} SessionRotations;
SessionRotations session_rotations(const Session *session);

/* Sums since the session began. */
typedef struct SessionTotals {
    uint64_t samples, lost, dropped; /* dropped ones are included in lost */
    uint64_t throttles, throttled_ns;
    uint64_t raw_bytes, stored_bytes, segments;
    uint64_t queue_bytes, queue_high_bytes;
    uint64_t segment_bytes;   /* written so far to the open segment */
    uint64_t segment_real_ns; /* when the open segment began; 0: there is none */
    uint64_t sweep;           /* the last sweep that ended */
    uint64_t written_sweep;   /* the last sweep that is written completely */
    int error;                /* why the writer fails at present; 0: it does not */
    bool is_left_open;        /* it has ended, and its last segment waits for a recovery */
    bool is_unwound;          /* its stacks are unwound before they are stored */
    UnwinderCounts stacks;    /* of these */
    uint32_t stack_bytes;     /* that a sample copies at most */
    uint64_t held_samples;    /* that stayed in their rings until they were written, since there
                               * was no other memory for them */
} SessionTotals;

SessionTotals session_totals(const Session *session);
/* The final path of the open segment. */
const char *session_path(const Session *session);
/* Whether its files hold other users' memory, so that only administrators may read them. */
bool session_is_sensitive(const Session *session);
bool session_has_segment(const Session *session);
/* Updates the reasons why it is degraded, from its own state and `others`, and logs each change.
 * Called a few times a minute. */
unsigned session_update_degraded(Session *session, unsigned others, uint64_t now_ns);
unsigned session_degraded(const Session *session);
