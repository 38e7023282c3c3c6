/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The store: a folder a session, a file or folder a segment, a manifest beside each, one daemon a
 * store. Each session has a writer thread behind a bounded queue: the main thread hands over
 * finished records and never waits for a disk. What concerns the whole (lock, budget, vacuum) is
 * the Store's. All functions belong to the main thread; what runs on a writer says so.
 */

#include "config/config.h"
#include "perfdata/event/event.h"
#include "perfdata/feature/coverage.h"
#include "perfdata/feature/environment.h"
#include "store/disk/anchor.h"
#include "util/buffer.h"
#include "util/macro.h"

typedef struct Store Store;
typedef struct StoreSession StoreSession;

/* Where less than usual may be held in memory; 0: as usual. */
typedef struct StoreMemory {
    uint64_t queue_bytes; /* what waits to be written, of all sessions */
    uint64_t table_bytes; /* of processes, for a snapshot */
    uint64_t store_bytes; /* of the whole, when Storage=volatile */
} StoreMemory;

typedef struct StoreOptions {
    const char *path; /* made where it lacks */
    /* Borrowed until store_free(), and read by writers: not to be changed meanwhile. */
    const PdEnvironment *environment;
    const Config *config; /* budgets; copied */
    StoreMemory memory;
    /* A finished file or folder, a manifest or a folder that readers come through is to be theirs
     * to read (a file then is no longer ours); NULL: all stays as it is. From any thread. */
    int (*seal)(void *userdata, int fd, bool sensitive);
    /* A sweep is written: store_session_written() tells more; or a segment was finished. From a
     * writer thread; may be NULL. */
    void (*on_written)(void *userdata);
    void *userdata;
} StoreOptions;

/* Takes the lock (-EBUSY: another daemon has it, the log says which) and lists what is there. What
 * a killed daemon left open is finished by the writer of its session, first of all. */
int store_open(const StoreOptions *options, Store **ret);
/* When all sessions are closed. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free);
/* New budgets, from a reload. */
void store_configure(Store *store, const Config *config);

/* Starts the writer thread, which first of all opens the folder. `sensitive`: holds other users'
 * memory. -EEXIST: it runs already. */
int store_session_start(Store *store, const SessionConfig *config, bool sensitive,
                        StoreSession **ret);
/* 1: the folder is open, and segments may begin; 0: not yet, on_written is called when it is; a
 * negative errno: it cannot be opened (logged), and the session can only be closed. */
int store_session_opened(StoreSession *session);
/* Waits for that. */
int store_session_await(StoreSession *session);
/* Starts it and waits. */
int store_session_new(Store *store, const SessionConfig *config, bool sensitive,
                      StoreSession **ret);
/* Finishes the segment, waits for the writer and frees. A disk that is sick for five seconds is not
 * waited for: the segment is left `.open`, and what waits in the queue counts as unwritten. Does
 * not wait for one that has ended or was given up. */
StoreSession *store_session_close(StoreSession *session);
DEFINE_CLEANUP(StoreSession *, store_session_close);
/* Begins to close: what is queued is written, the segment finished, and then on_written called. */
void store_session_end(StoreSession *session);
/* Whether that is over, so that store_session_close() does not wait. */
bool store_session_has_ended(StoreSession *session);
/* What waits in the queue is lost and counts as unwritten, unless the session has ended. */
void store_session_give_up(StoreSession *session);
/* Ends it, if nobody did, and waits for that as store_session_close() does. */
void store_session_wait(StoreSession *session);
/* New limits, and what the next segment is to be. */
void store_session_configure(StoreSession *session, const SessionConfig *config);

/* What begins with it: events (copied), tracing data, clock, and records that every segment has
 * (kernel maps, ending in FINISHED_INIT). */
typedef struct SegmentHead {
    const PdEvents *events;
    Bytes tracing;
    ClockAnchor clock;
    /* From when on it is recorded, on which CPUs, and which gaps go on when it begins; borrowed.
     * from_ns 0: not known. The segment before it ends where this one begins. */
    const PdCoverage *coverage;
    bool continues;  /* begins where the last one of this boot ended: its rings went on */
    Buffer preamble; /* taken, when it succeeds */
} SegmentHead;

/* The next segment opens, then the current one (if any) is finished, both by the writer, in the
 * order of the queue. When the folder is open. -ENOBUFS: the queue is full, the current segment
 * goes on. */
int store_session_begin(StoreSession *session, SegmentHead *head);

typedef enum StoreKind { STORE_SIDE_BAND, STORE_SAMPLES } StoreKind;

typedef struct StoreBatch {
    StoreKind kind;
    unsigned cpu;               /* which data.N samples go to */
    uint64_t first_ns, last_ns; /* least and greatest time in it; 0: not known, then looked for */
    uint64_t samples;
    Buffer records; /* taken, when it succeeds */
} StoreBatch;

/* Queues it. -ENOBUFS: the queue is full, the caller counts the loss and goes on. */
int store_session_write(StoreSession *session, StoreBatch *batch);
/* Queues the end of a sweep: frames are ended and written; `round`: FINISHED_ROUND before it (no
 * effect in directories). The clock is noted. */
int store_session_end_sweep(StoreSession *session, uint64_t sweep, bool round,
                            const ClockAnchor *clock);
/* All that was sampled before to_ns is in what was queued; the end of the next sweep takes it
 * along.
 */
void store_session_cover(StoreSession *session, uint64_t to_ns);
/* Nothing is recorded from at_ns on, for this reason; before store_session_end(). */
void store_session_leave(StoreSession *session, PdGapReason reason, uint64_t at_ns);
/* The greatest sweep of which all is written (handed to the kernel, not lost when we die). */
uint64_t store_session_written(const StoreSession *session);
typedef enum StoreCause {
    STORE_LOST_RING,  /* the kernel had no room */
    STORE_LOST_QUEUE, /* we had none */
} StoreCause;

/* Facts for the manifest of the open segment, added to what it has. */
typedef struct SegmentFacts {
    uint64_t lost; /* samples, for which these two hold */
    unsigned cpu;
    StoreCause cause;
    uint64_t throttled_ns, throttles, inferred, dropped;
    uint64_t sweeps, drain_ns, cpu_ns; /* what recording took */
    uint64_t memory_bytes;             /* resident; the greatest counts */
    const PdGap *gap;                  /* NULL: none; see pd_coverage_add_gap() */
} SegmentFacts;
int store_session_note(StoreSession *session, const SegmentFacts *facts);

typedef struct StoreSessionCounts {
    uint64_t segments;                /* finished since start */
    uint64_t begun;                   /* how many store_session_begin() took effect */
    uint64_t raw_bytes, stored_bytes; /* of the open segment */
    uint64_t total_raw_bytes, total_stored_bytes, total_samples;
    uint64_t queue_bytes, queue_high_bytes;
    uint64_t dropped_samples;   /* because the queue was full */
    uint64_t unwritten_samples; /* taken into the queue, but never written */
    uint64_t segment_began_ns;  /* CLOCK_MONOTONIC */
    int error;                  /* the writer's present trouble: -ENOSPC …; 0: none */
    bool is_stuck;              /* what is queued first was not written for ten seconds */
    bool is_full; /* something was refused, and half of the queue is not written yet */
    /* The file was deleted under us and began anew without what had been emitted, or it takes a
     * quarter of all that the store may: begin the next one. */
    bool rotate_wanted;
} StoreSessionCounts;

StoreSessionCounts store_session_counts(StoreSession *session);
/* Where the current segment will lie, final path. Valid until the next begin. */
const char *store_session_path(const StoreSession *session);

/* What a recorder that takes over rings reads to know what was written: the segments of this boot
 * with samples that the session's last daemon left, newest first (`back` 0), and the one before it
 * (`back` 1), for one daemon may have died between the two. NULL: none. Waits until the newest one
 * is recovered. */
const char *store_session_previous(StoreSession *session, unsigned back);

enum { STORE_GAPS_MAX = 16 };

/* What of a span of time was recorded, by CLOCK_REALTIME. */
typedef struct StoreCoverage {
    bool is_known;
    uint64_t since_ns, until_ns;
    uint64_t recorded_ns;       /* of it, on each CPU that was online */
    PdGap gaps[STORE_GAPS_MAX]; /* of many the nearest are one */
    size_t n_gaps;
} StoreCoverage;

typedef struct StoreUse {
    uint64_t used_bytes, limit_bytes, free_bytes;
    /* How far back a full store will reach at the present rates, in the configured session for
     * which that is least; 0: not known. */
    uint64_t reach_ns;
} StoreUse;
StoreUse store_use(Store *store);
/* The full store will not hold least_ns of this session, nor as long as its limits of age and
 * count ask for, if that is less; false: it will, or nobody knows. */
bool store_session_is_short(Store *store, const char *name, uint64_t least_ns);
/* Deletes what is beyond the budgets, oldest first. Writers do so by themselves. */
int store_vacuum(Store *store);
