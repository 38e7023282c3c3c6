/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the source files behind session.h share. */

#include "capture/plan/cpu-list.h"
#include "session/account.h"
#include "session/dropped.h"
#include "session/resume.h"
#include "session/session.h"
#include "stack/arena.h"
#include "stack/stack-share.h"

enum { SESSION_GATHERS = 8, SESSION_WAITING = 64 };

struct Session {
    SessionHost host;
    SessionConfig config;
    SamplerSession *sampler;
    StoreSession *store;
    Emission *emission;
    Resume *resume;     /* NULL: the rings hold nothing that a previous recorder has written */
    uint64_t oldest_ns; /* no sample that another recorder left is older; UINT64_MAX: none left */
    StoreBatch gathered[SESSION_GATHERS];
    Arena arena;                         /* without memory where stacks are not unwound */
    StoreBatch waiting[SESSION_WAITING]; /* samples in the arena that are not queued yet */
    size_t n_waiting, waiting_bytes;
    StoreBatch *left; /* unwritten samples in the arena of the previous recorder */
    size_t n_left;
    uint64_t held_samples; /* unwound samples that stayed in their rings until they were written */
    uint8_t seen_cpus[CPU_LIST_MAX / 8]; /* a bit for each CPU with a sample in the open segment */
    Dropped dropped, broken;             /* not yet recorded in the segment */
    Account account, at_rotation, at_log;
    unsigned degraded;
    uint64_t not_queued;               /* samples that were dropped before the queue */
    uint64_t dropped_seen, dropped_ns; /* all drops when last seen, and when they last grew */
    uint64_t sweep;
    bool lacks_side_band;        /* the open segment lacks side-band for which the queue had no
                                  * room */
    bool removes_broken_samples; /* it has events whose samples some kernels write incorrectly */
    Buffer cleaned;
    Buffer unwound;
    UnwinderCounts stacks, shared; /* since the session began, and those that `share` knows */
    StackShare share;
    uint64_t round_start_ns; /* start of the sweep at the last FINISHED_ROUND; 0: none yet */
    unsigned generation;
    ClockAnchor began;
    uint64_t n_begun; /* number of segments */
    bool is_paused, is_sensitive;
    bool is_ending;          /* its events are closed, its segment is still open */
    bool rotate_asked;       /* rotate when no mapping in the segment waits for a build id */
    uint64_t rotate_held_ns; /* since when the rotation is delayed; 0: it is not */
    bool is_open;            /* its folder in the store exists */
    uint64_t enabled_ns;     /* since when its events have been enabled or disabled */
    uint64_t swept_ns;       /* all samples up to this time were taken */
    uint64_t gap_since_ns[PD_GAP_REASONS]; /* begin of each gap on all CPUs that has not ended;
                                            * 0: no gap */
    PdCoverage pending;                    /* changes for which the store had no room */
    uint8_t had_cpus[CPU_LIST_MAX / 8], lost_bits[CPU_LIST_MAX / 8];
    uint64_t sampled_ns[CPU_LIST_MAX]; /* time of the last sample of each CPU */
};

/* In session-note.c: */
int session_log_failure(const Session *session, int error, const char *what);

/* In session-take.c: */
/* Takes ownership of the records. If the writer has no room, they are lost and counted. */
int session_queue(Session *session, StoreBatch *batch);
void session_forget_batch(StoreBatch *batch);
/* Queues the side-band that the history wants written before the samples that wait. */
int session_queue_side_band(Session *session);
/* Queues side-band first, then all gathered samples. */
int session_queue_gathered(Session *session);

/* In session-coverage.c: */
void session_note_gap(Session *session, const PdGap *gap);
/* Notes that the ring of a CPU lost samples between the samples before and after this call. */
void session_see_lost(Session *session, unsigned cpu);
void session_see_sample(Session *session, unsigned cpu, uint64_t time_ns);
/* The coverage at the beginning of a segment; *ret is overwritten. */
int session_coverage(Session *session, PdCoverage *ret);
/* Notes that the sweep that began at start_ns is queued. */
void session_cover(Session *session, uint64_t start_ns);

/* In session-rotate.c: writes the cost of recording into the manifest of the segment that ends. */
void session_settle_account(Session *session, const char *why);

/* In session-take.c: */
/* Takes the memory that outlives the recorder, with what the previous one left in it. */
void session_arena_begin(Session *session);
void session_arena_end(Session *session, bool writer_has_ended);
/* Finds what the previous recorder left and its segments do not have; call it when they are read.
 */
int session_arena_read(Session *session);
