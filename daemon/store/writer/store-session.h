/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One session of the store. It has a writer thread behind a bounded queue: the main thread passes
 * finished records and never waits for a disk. All functions belong to the main thread.
 */

#include "config/config.h"
#include "store/disk/batch.h"
#include "store/folder/store.h"
#include "util/macro.h"

/* Starts the writer thread, which opens the folder first. `sensitive`: holds other users' memory.
 * -EEXIST: it is running already. */
int store_session_start(Store *store, const SessionConfig *config, bool sensitive,
                        StoreSession **ret);
/* 1: the folder is open and segments may begin; 0: not yet, on_written is called when it is; a
 * negative errno: it cannot be opened (logged), and the session can only be closed. */
int store_session_opened(StoreSession *session);
/* Waits until the folder is open. */
int store_session_await(StoreSession *session);
/* Starts it and waits until the folder is open. */
int store_session_new(Store *store, const SessionConfig *config, bool sensitive,
                      StoreSession **ret);
/* Finishes the segment, waits for the writer and frees the session. If the disk does not answer for
 * five seconds, the segment stays `.open` and the queue counts as unwritten. Does not wait for a
 * session that has ended or was given up. */
StoreSession *store_session_close(StoreSession *session);
DEFINE_CLEANUP(StoreSession *, store_session_close);
/* Begins to close: the writer writes the queue, finishes the segment, and then on_written is
 * called. */
void store_session_end(StoreSession *session);
/* Whether closing is complete, so that store_session_close() does not wait. */
bool store_session_has_ended(StoreSession *session);
/* Drops the queue and counts it as unwritten, unless the session has ended. */
void store_session_give_up(StoreSession *session);
/* Ends it, if that has not been done, and waits as store_session_close() does. */
void store_session_wait(StoreSession *session);
/* Sets new limits, and the settings of the next segment. */
void store_session_configure(StoreSession *session, const SessionConfig *config);

/* Queues the opening of the next segment and then the finishing of the current one (if any). The
 * folder must be open. -ENOBUFS: the queue is full, and the current segment goes on. */
int store_session_begin(StoreSession *session, SegmentHead *head);

/* Queues a batch. -ENOBUFS: the queue is full; the caller must count the loss. */
int store_session_write(StoreSession *session, StoreBatch *batch);
/* Queues the end of a sweep: open frames are ended and written; `round`: write FINISHED_ROUND
 * before it (no effect in directories). The clock is noted. */
int store_session_end_sweep(StoreSession *session, uint64_t sweep, bool round,
                            const ClockAnchor *clock);
/* Before store_session_end_sweep(): no record of a later sweep is older than this. */
void store_session_note_floor(StoreSession *session, uint64_t floor_ns);
/* Notes that everything sampled before to_ns is queued; the end of the next sweep records it. */
void store_session_cover(StoreSession *session, uint64_t to_ns);
/* Notes that recording stops at at_ns for this reason; call it before store_session_end(). */
void store_session_leave(StoreSession *session, PdGapReason reason, uint64_t at_ns);
/* Wants on_written called when this sweep is written; without that it is not, to spare a wake-up.
 * Call it before the sweep is queued, or before store_session_written(). */
void store_session_listen(StoreSession *session, uint64_t sweep);
/* The latest sweep that is written completely (passed to the kernel, so it survives our death). */
uint64_t store_session_written(const StoreSession *session);
int store_session_note(StoreSession *session, const SegmentFacts *facts);

typedef struct StoreSessionCounts {
    uint64_t segments;                /* finished since start */
    uint64_t begun;                   /* how many calls of store_session_begin() took effect */
    uint64_t raw_bytes, stored_bytes; /* of the open segment */
    uint64_t total_raw_bytes, total_stored_bytes, total_samples;
    uint64_t queue_bytes, queue_high_bytes;
    uint64_t dropped_samples;   /* because the queue was full */
    uint64_t unwritten_samples; /* queued but never written */
    uint64_t segment_began_ns;  /* CLOCK_MONOTONIC */
    int error;                  /* why the writer fails at present: -ENOSPC …; 0: it does not */
    bool is_left_open;          /* it has ended or was given up, and its last segment
                                 * waits for a recovery */
    bool is_stuck;              /* the first Op in the queue has waited for ten seconds */
    bool is_full; /* a request was refused, and more than half of the queue is still waiting */
    /* The file was deleted and began again without what had been written, or it takes a quarter of
     * the whole budget: begin the next segment. */
    bool rotate_wanted;
} StoreSessionCounts;

StoreSessionCounts store_session_counts(StoreSession *session);
/* The final path of the current segment. Valid until the next begin. */
const char *store_session_path(const StoreSession *session);

/* The segments that a recorder must read to know what the previous one wrote before it took over
 * the rings: those of this boot with samples that the session's last daemon left, the newest
 * (`back` 0) and the one before it (`back` 1), since that daemon may have died between the two.
 * NULL: none. Waits until the newest one is recovered; if that fails, it is `.open` and stays until
 * the session begins a segment, and a reader finds all whole records in it. */
const char *store_session_previous(StoreSession *session, unsigned back);
