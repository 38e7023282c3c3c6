/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A session between its two threads: op-queue.c and session-life.c are the main thread's
 * side, segment-writer.c is the writer's. `mutex` protects what both use; the comments on other
 * fields name their thread.
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
    SegmentPlan *plan; /* for BEGIN; NULL once it is taken */
    StoreBatch batch;  /* for BATCH */
    size_t done;       /* for BATCH: bytes of its records that are written */
    uint64_t sweep;    /* for SWEEP */
    bool marked;       /* for SWEEP: FINISHED_ROUND is written or was not requested */
    ClockAnchor clock; /* for SWEEP and CLOSE */
    bool has_clock;
    SegmentFacts facts; /* for NOTE */
    PdGap gap;
    uint64_t covered_ns; /* for SWEEP */
    uint64_t floor_ns;   /* for SWEEP: no later record is older */
    PdGapReason after;   /* for CLOSE */
    uint64_t leave_ns;   /* for CLOSE; 0: where the last sweep ended */
} Op;

/* What readers may see of the open segment: everything that is flushed. */
typedef struct SegmentView {
    Manifest *manifest; /* NULL: there is none */
    SegmentName name;
    int fd;           /* the file, or the segment's own folder */
    PdEvents *events; /* with names and groups, which the file does not have yet */
    Buffer tracing;
    uint64_t floor_ns;                    /* no later record is older; 0: no sweep was written */
    uint64_t ends[1 + SEGMENT_FILES_MAX]; /* of what the last sweep wrote to each file */
    unsigned n_files;                     /* data.N of a folder */
} SegmentView;

struct StoreSession {
    StoreSession *next; /* in the store's list */
    Store *store;
    Folder *folder; /* the writer's until `opened`; NULL: none yet */
    char name[CONFIG_NAME_MAX];
    bool sensitive;
    pthread_t thread;

    pthread_mutex_t mutex;
    pthread_cond_t wake, ended;
    Op *first, **last;
    size_t queue_max;
    bool busy;    /* the writer works on `first` */
    bool wakes;   /* the writer is to be woken when the mutex is free */
    bool refused; /* a request was refused and the queue has not been half empty since */
    SessionConfig config;
    int opened; /* 1: its folder is open; 0: not yet; a negative errno: it cannot be opened */
    bool closing, has_ended;
    bool given_up;       /* the disk did not answer in time: the queue is lost */
    bool owner_gone;     /* the writer must free the session */
    bool recovering;     /* recovering segments of earlier recorders, which takes time */
    uint64_t give_up_ns; /* CLOCK_MONOTONIC; when a closing writer in trouble gives up */
    uint64_t n_done;
    uint64_t waits_since_ns; /* CLOCK_MONOTONIC; since when `first` waits */
    StoreSessionCounts counts;
    _Atomic uint64_t written, listened; /* sweeps: the last one written, the last one to tell of */
    SegmentView view;

    /* The main thread's fields. */
    int zstd_level;
    Layout layout;
    char *path;
    bool begun;
    uint64_t first_number; /* the first number that this session assigned */
    uint64_t covered_ns, floor_ns;
    PdGapReason after;
    uint64_t leave_ns;
    bool has_previous;
    char *previous[2];

    /* The writer's fields. */
    Segment *segment, *following;
    bool left_open;                  /* a segment could not be finished at the end */
    SegmentPlan *plan;               /* of a deleted segment that is to begin again */
    bool coverage_changed;           /* a gap changed it, which must be saved for a recovery */
    uint64_t synced_ns, measured_ns; /* CLOCK_MONOTONIC */
    LogRate dropping, hiding;
    int logged_error;               /* the error logged last; 0: none */
    uint64_t base_raw, base_stored; /* of finished segments */
};

/* In op.c: */
Op *op_new(OpType type);
Op *op_free(Op *op);
DEFINE_CLEANUP(Op *, op_free);
/* Call it with the mutex held: the number of samples in the queue. */
uint64_t session_queued_samples(const StoreSession *session);
/* Frees what the writer has not freed; called by the last thread that uses the session. */
StoreSession *session_free(StoreSession *session);

/* In op-queue.c; call it with the mutex held. Takes ownership of the Op. */
void op_queue_append(StoreSession *session, Op *op);

/* In claim.c, on the writer: opens its folder, and creates it if it is missing. */
int session_claim(StoreSession *session);
/* `abandoned`: its last segment was not finished. */
void session_release(StoreSession *session, bool abandoned);

/* In op-perform.c, on the writer: */
/* A negative errno: it may be done again. */
int op_perform(StoreSession *session, Op *op);
/* Files were deleted: opens all folders again. A deleted segment begins again with the next Op,
 * unless it is about to be finished. */
void op_regain_ground(StoreSession *session, Op *op);
/* Adds a segment that is no longer written to the list of its folder. */
void op_register_segment(StoreSession *session, const Segment *segment);
/* Publishes the figures that the main thread may read. */
void op_publish(StoreSession *session);
/* Calls on_written of the store's owner. */
void op_tell_owner(const StoreSession *session);

/* In segment-writer.c: the writer thread. */
void *session_write(void *session);

/* In view.c: */
/* Copies the view, with a duplicate of its descriptor; call it with both mutexes held, the store's
 * and the session's. */
int segment_view_copy(const SegmentView *view, SegmentView *ret);
void segment_view_done(SegmentView *view);
/* Empties the view; the caller ends what it was, where he may wait for a disk. */
SegmentView segment_view_take(SegmentView *view);
/* Copies the events of a view. */
int segment_view_copy_events(const PdEvents *from, PdEvents **ret);
/* Updates the view from `segment` (NULL: none); call it on the writer with the session's mutex
 * held, and end *ret_old without it. */
int segment_view_follow(SegmentView *view, const Segment *segment, SegmentView *ret_old);
