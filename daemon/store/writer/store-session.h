/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One session of the store. It has a writer thread behind a bounded queue: the main thread hands
 * over finished records and never waits for a disk. All functions belong to the main thread.
 */

#include "config/config.h"
#include "store/disk/batch.h"
#include "store/folder/store.h"
#include "util/macro.h"

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

/* The next segment opens, then the current one (if any) is finished, both by the writer, in the
 * order of the queue. When the folder is open. -ENOBUFS: the queue is full, the current segment
 * goes on. */
int store_session_begin(StoreSession *session, SegmentHead *head);

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
