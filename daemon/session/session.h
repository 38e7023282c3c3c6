/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A session: its rings at the sampler's, its place in the history, its segments in the store. Here
 * the samples of a sweep become batches for the writer, with the side-band they need before them,
 * and here it is decided when a segment ends.
 */

#include "capture/sampler/sampler.h"
#include "process/history/history.h"
#include "session/byte-rate.h"
#include "store/writer/store-session.h"
#include "tracker/tracker.h"
#include "util/macro.h"

/* What all sessions of a recorder share; borrowed. */
typedef struct SessionHost {
    Sampler *sampler;
    Tracker *tracker;
    Store *store;
    ByteRate *rate; /* of all sessions together */
} SessionHost;

typedef struct Session Session;

/* What of it could not be. */
typedef enum SessionPart { SESSION_EVENTS, SESSION_STORE } SessionPart;

/* Opens its events alone, which may be started or paused then. What fails is logged. */
int session_new(Sampler *sampler, const SessionConfig *config, Session **ret);
/* The same with events that are open; takes them. */
int session_new_opened(SamplerSession *sampler, const SessionConfig *config, Session **ret);
/* And its place in the store, which takes a disk: session_is_open() tells when it is there. Both
 * are running where a recorder before us left them so. What fails is logged. */
int session_attach(Session *session, const SessionHost *host);
/* 1: it may record; 0: the disk has not answered yet; a negative errno: it never will (logged). */
int session_is_open(Session *session);
/* Waits until it may record, and reads what a recorder before us wrote last; before the main loop
 * runs. */
int session_await(Session *session);
/* Finishes its segment. `keep_rings`: they stay with the keeper, for the next recorder. */
Session *session_close(Session *session, bool keep_rings);
/* Closes its events and begins to finish its segment, without waiting; it is in no sweep any more.
 * session_close() follows, and does not wait when session_has_ended(). */
void session_end(Session *session);
bool session_has_ended(Session *session);
/* What the disk has not taken by now is lost. */
void session_give_up(Session *session);
/* Begins to finish its segment and waits; for when the main loop has ended. */
void session_wait(Session *session);

/* What another recorder left in its rings is not older; UINT64_MAX: nothing is there. */
uint64_t session_oldest_ns(const Session *session);
SamplerSession *session_sampler(const Session *session);
int session_start(Session *session);
/* Its events rest: what the rings hold is still taken, and no segment ends by its time alone. */
int session_pause(Session *session);
/* Its events rest for good: nothing is recorded from now on, for this reason. */
void session_leave(Session *session, PdGapReason reason);
/* From at_ns (CLOCK_MONOTONIC) on nothing is recorded for this reason, until it ends. Gaps of
 * several reasons may overlap; one of a reason that goes on already begins no other. */
void session_begin_gap(Session *session, PdGapReason reason, uint64_t at_ns);
void session_end_gap(Session *session, PdGapReason reason, uint64_t at_ns);
/* New limits that need no new events. */
void session_configure(Session *session, const SessionConfig *config);

/* Samples that were taken, in a sweep; between them the side-band they need. */
int session_take(Session *session, const Batch *batch);
/* The sweep that began at start_ns is complete, for the history too: hands over what was gathered.
 */
int session_end_sweep(Session *session, uint64_t start_ns, const ClockAnchor *clock);
/* Before a sweep: gives back to the kernel what is safe by now. */
void session_give_back(Session *session);
int session_lost(Session *session, uint64_t id, unsigned cpu, uint64_t lost, uint64_t time_ns);
/* For the manifest; userdata is the session. */
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

/* Whether the segment is to end now. */
RotateReason session_is_due(const Session *session, const ClockAnchor *clock);
/* Mappings in its segment wait for their build ids, for a few seconds at most. */
bool session_waits(const Session *session);
/* Whether the segment may end for that reason now. One that waits for build ids ends a little
 * later, unless the reason allows no delay. */
bool session_may_rotate(Session *session, RotateReason reason, const ClockAnchor *clock);
/* The segment ends as soon as it may. */
void session_ask_rotation(Session *session);
/* The next segment; between two sweeps only. */
int session_rotate(Session *session, RotateReason reason, const ClockAnchor *clock);
/* How often that was done, and of how many the segment before is finished. */
typedef struct SessionRotations {
    uint64_t asked, finished;
} SessionRotations;
SessionRotations session_rotations(const Session *session);

/* Since the session began. */
typedef struct SessionTotals {
    uint64_t samples, lost, dropped; /* dropped ones are among the lost */
    uint64_t throttles, throttled_ns;
    uint64_t raw_bytes, stored_bytes, segments;
    uint64_t queue_bytes, queue_high_bytes;
    uint64_t segment_bytes;   /* of the open one, written so far */
    uint64_t segment_real_ns; /* when it began; 0: there is none */
    uint64_t sweep;           /* the last one that ended */
    uint64_t written_sweep;   /* and the last one that is written */
    int error;                /* the writer's present trouble */
} SessionTotals;

SessionTotals session_totals(const Session *session);
/* Where the open segment will lie. */
const char *session_path(const Session *session);
/* Holds other users' memory: for administrators alone. */
bool session_is_sensitive(const Session *session);
bool session_has_segment(const Session *session);
/* Why it is less than asked for: what it knows itself and `others`, told in the log when it
 * changes. For some times a minute. */
unsigned session_update_degraded(Session *session, unsigned others, uint64_t now_ns);
unsigned session_degraded(const Session *session);
