/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files behind session.h share. */

#include "capture/sampler/cpu-list.h"
#include "session/account.h"
#include "session/dropped.h"
#include "session/resume.h"
#include "session/session.h"

enum { SESSION_GATHERS = 8 };

struct Session {
    SessionHost host;
    SessionConfig config;
    SamplerSession *sampler;
    StoreSession *store;
    Emission *emission;
    Resume *resume; /* NULL: nothing in the rings was written by another */
    StoreBatch gathered[SESSION_GATHERS];
    uint8_t seen_cpus[CPU_LIST_MAX / 8]; /* in the open segment */
    Dropped dropped;                     /* not yet told in the segment */
    Account account, at_rotation, at_log;
    unsigned degraded;
    uint64_t dropped_seen, dropped_ns; /* by the writer's count, and when it grew last */
    uint64_t sweep;
    bool lacks_side_band;        /* in the open segment: there was no room */
    bool removes_broken_samples; /* some of its events are of a kind that kernels confuse */
    Buffer sifted;
    uint64_t round_start_ns; /* of the sweep at the last FINISHED_ROUND; 0: none yet */
    unsigned generation;
    ClockAnchor began;
    uint64_t n_begun; /* segments */
    bool is_paused, is_sensitive;
    bool is_ending;          /* its events are closed, its segment is not */
    bool rotate_asked;       /* when nothing in the segment waits for a build id */
    uint64_t rotate_held_ns; /* since when the end of the segment is put off; 0: it is not */
    bool is_open;            /* its folder is there */
    uint64_t enabled_ns;     /* since when its events run, or rest */
    uint64_t swept_ns;       /* up to when all was taken */
    uint64_t gap_since_ns[PD_GAP_REASONS]; /* that go on, on all CPUs; 0: none */
    PdCoverage pending;                    /* gaps that the store does not know yet */
    uint8_t had_cpus[CPU_LIST_MAX / 8], lost_bits[CPU_LIST_MAX / 8];
    uint64_t sampled_ns[CPU_LIST_MAX]; /* the last sample of each CPU */
};

/* session-note.c */
int session_log_failure(const Session *session, int error, const char *what);

/* session-queue.c */
/* Takes the records; what the writer has no room for is lost, and counted. */
int session_queue(Session *session, StoreBatch *batch);
void session_forget_batch(StoreBatch *batch);
/* What the history wants written before the samples that wait. */
int session_queue_side_band(Session *session);
/* That, and then all that was gathered. */
int session_queue_gathered(Session *session);
/* Mappings that wait for build ids are written without. */
int session_release_held(Session *session);

/* session-coverage.c */
void session_note_gap(Session *session, const PdGap *gap);
/* The ring of a CPU had no room, between the samples before and after. */
void session_see_lost(Session *session, unsigned cpu);
void session_see_sample(Session *session, unsigned cpu, uint64_t time_ns);
/* As a segment begins; *ret is overwritten. */
int session_coverage(Session *session, PdCoverage *ret);
/* The sweep that began at start_ns is queued. */
void session_cover(Session *session, uint64_t start_ns);

/* session-rotate.c: into the manifest of the segment that is about to end. */
void session_settle_account(Session *session, const char *why);
