/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A session between its two threads: op-queue.c is the main thread's side of the queue,
 * segment-writer.c the other. `mutex` guards what both touch; the rest says whose it is.
 */

#include <stdatomic.h>

#include "store/folder/store-private.h"
#include "store/segment/segment.h"
#include "store/writer/store-session.h"
#include "util/log.h"

enum { SESSION_QUEUE_BYTES = 32 << 20, SESSION_DRAIN_SEC = 5 };

#define SESSION_STUCK_NS (10 * NS_PER_SECOND)

typedef enum OpType { OP_BEGIN, OP_BATCH, OP_SWEEP, OP_NOTE, OP_CLOSE } OpType;

typedef struct Op {
    struct Op *next;
    OpType type;
    size_t bytes;
    SegmentPlan *plan; /* BEGIN; NULL once it is taken */
    StoreBatch batch;  /* BATCH */
    size_t done;       /* of its records */
    uint64_t sweep;    /* SWEEP */
    bool marked;       /* its round is written, or was not asked for */
    ClockAnchor clock; /* SWEEP, CLOSE */
    bool has_clock;
    SegmentFacts facts; /* NOTE */
    PdGap gap;
    uint64_t covered_ns; /* SWEEP */
    PdGapReason after;   /* CLOSE */
    uint64_t leave_ns;   /* CLOSE; 0: what the last sweep covered */
} Op;

/* What others may know of the segment that is written: as far as it was flushed. */
typedef struct SegmentView {
    Manifest *manifest; /* NULL: there is none */
    SegmentName name;
    int fd;           /* the file, or the segment's own folder */
    PdEvents *events; /* with names and groups, which the file itself has not yet */
    Buffer tracing;
} SegmentView;

struct StoreSession {
    StoreSession *next; /* of the store's */
    Store *store;
    Folder *folder; /* the writer's until `opened`; NULL: it has none yet */
    char name[CONFIG_NAME_MAX];
    bool sensitive;
    pthread_t thread;

    pthread_mutex_t mutex;
    pthread_cond_t wake, ended;
    Op *first, **last;
    size_t queue_max;
    bool busy;    /* the writer works on `first` */
    bool refused; /* something, since the queue was half empty */
    SessionConfig config;
    int opened; /* 1: it has its folder; 0: not yet; a negative errno: it cannot be had */
    bool closing, has_ended;
    bool given_up;       /* what waits is lost: the disk did not answer in time */
    bool owner_gone;     /* then the writer frees all this */
    bool recovering;     /* what others left, which takes its time */
    uint64_t give_up_ns; /* CLOCK_MONOTONIC; a writer in trouble that is closing ends then */
    uint64_t n_done;
    uint64_t waits_since_ns; /* CLOCK_MONOTONIC; for `first` to be written */
    StoreSessionCounts counts;
    _Atomic uint64_t written;
    SegmentView view;

    /* The main thread's. */
    int zstd_level;
    Layout layout;
    char *path;
    bool begun;
    uint64_t first_number; /* of those that this session gave */
    uint64_t covered_ns;
    PdGapReason after;
    uint64_t leave_ns;
    bool has_previous;
    char *previous[2];

    /* The writer's. */
    Segment *segment, *following;
    bool left_open;                  /* at its end: a segment that could not be finished */
    SegmentPlan *plan;               /* of one that was deleted and is to begin anew */
    bool coverage_changed;           /* by a gap, which a recovery has to know */
    uint64_t synced_ns, measured_ns; /* CLOCK_MONOTONIC */
    LogRate dropping, hiding;
    int logged_error;               /* the trouble that was logged last; 0: none */
    uint64_t base_raw, base_stored; /* of segments that are finished */
};

/* op.c */
Op *op_new(OpType type);
Op *op_free(Op *op);
DEFINE_CLEANUP(Op *, op_free);
/* With the mutex held: samples in the queue. */
uint64_t session_queued_samples(const StoreSession *session);
/* Frees what the writer has not; by whoever is the last to have it. */
StoreSession *session_free(StoreSession *session);

/* claim.c, on the writer: its folder, made where it lacks. */
int session_claim(StoreSession *session);
/* `abandoned`: with a segment that was not finished. */
void session_release(StoreSession *session, bool abandoned);

/* segment-writer.c: the writer thread. */
void *session_write(void *session);

/* view.c */
/* A copy, with a descriptor of its own; with both mutexes held, the store's and the session's. */
int segment_view_copy(const SegmentView *view, SegmentView *ret);
void segment_view_done(SegmentView *view);
/* The session's mutex held, on its writer: what `segment` (NULL: none) has by now. */
int segment_view_follow(SegmentView *view, const Segment *segment);
