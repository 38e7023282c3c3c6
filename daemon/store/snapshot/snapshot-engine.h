/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A snapshot is a time window of a session, cut record by record out of its segments (including the
 * open one) into a recording of its own in the store's folder `snapshots`. Threads of the engine
 * choose, read and write; its callbacks run on the main thread, in the loop.
 *
 * NAME.perf.data is a file or a folder, and NAME.json next to it describes it. While a snapshot is
 * built, and if it is transient, its name begins with a dot.
 *
 * All functions belong to the main thread.
 */

#include "loop/loop.h"
#include "store/folder/housekeeper.h"
#include "store/folder/store.h"
#include "store/window/snapshot-request.h"

typedef struct SnapshotEngine SnapshotEngine;
typedef struct Snapshot Snapshot; /* a snapshot that is being made */

typedef struct SnapshotInfo {
    char name[SNAPSHOT_NAME_MAX];
    const char *path; /* borrowed until the next call on the engine */
    char session[CONFIG_NAME_MAX];
    Layout layout;
    bool sensitive, pinned, transient;
    char reason[SNAPSHOT_TEXT_MAX];
    uint32_t uid;
    uint64_t created_ns, expires_ns; /* CLOCK_REALTIME; 0: never */
    uint64_t since_ns, until_ns;     /* of its samples, CLOCK_REALTIME; both 0: there are none */
    uint64_t first_ns, last_ns;      /* the same by CLOCK_MONOTONIC */
    uint64_t samples, lost, bytes;
    uint64_t unidentified;                                 /* mapped files without a build id */
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX]; /* why it has less than was requested */
    size_t n_partial;
    StoreCoverage coverage; /* of the requested window */
    size_t n_files;         /* 1 for a file; `data` and data.N for a folder */
} SnapshotInfo;

typedef struct SnapshotCallbacks {
    /* Reports how much of the input has been read; may be NULL. */
    void (*on_progress)(void *userdata, uint64_t done_bytes, uint64_t total_bytes);
    /* Called once, as the last callback, with either `failure` or `info`. The Snapshot is freed
     * when it returns. */
    void (*on_done)(void *userdata, const SnapshotFailure *failure, const SnapshotInfo *info);
    void *userdata;
} SnapshotCallbacks;

/* Removes unfinished snapshots of a killed daemon and lists the finished ones. The store and the
 * loop must outlive the engine; the housekeeper must be freed before it. */
int snapshot_engine_new(Store *store, Loop *loop, Worker *housekeeper, SnapshotEngine **ret);
/* Cancels what is being made, without a callback. */
SnapshotEngine *snapshot_engine_free(SnapshotEngine *engine);
DEFINE_CLEANUP(SnapshotEngine *, snapshot_engine_free);

/* A letter or digit, then letters, digits, `.`, `_`, `-`; at most 64. */
bool snapshot_name_is_valid(const char *name);

/*
 * Queues it. All data of the window must have been written: the caller has had the session sweep
 * after the window's end and that sweep is written (store_session_written()). -EINVAL: an invalid
 * name, or a window that ends before it begins; -EEXIST: the name is taken; -EBUSY: too many wait,
 * in total or for this uid.
 */
int snapshot_begin(SnapshotEngine *engine, const SnapshotRequest *request,
                   const SnapshotCallbacks *callbacks, Snapshot **ret);
/* Deletes everything and calls no callback any more. Accepts and returns NULL. */
Snapshot *snapshot_cancel(Snapshot *snapshot);

/* Calls fn with the finished, not transient snapshots, sorted by name; fn must not change the list.
 * A negative return value stops the iteration. */
int snapshot_each(SnapshotEngine *engine, int (*fn)(void *userdata, const SnapshotInfo *info),
                  void *userdata);
/* Finds transient ones too. -ENOENT. */
int snapshot_find(SnapshotEngine *engine, const char *name, SnapshotInfo *ret);
/* The result of a change: 0 or a negative errno, and the bytes that it took on the disk. */
typedef struct SnapshotAnswer {
    void (*on_done)(void *userdata, int error, uint64_t bytes); /* may be NULL */
    void *userdata;
    bool privileged; /* may use the housekeeper's reserved places */
} SnapshotAnswer;
/* Begins the change; on_done is called if 0 is returned. -ENOENT; -EBUSY: another change of it is
 * running, too many changes wait, or the folder is being listed again after it was replaced. Files
 * that are open can still be read to the end. */
int snapshot_remove(SnapshotEngine *engine, const char *name, const SnapshotAnswer *answer);
int snapshot_set_pinned(SnapshotEngine *engine, const char *name, bool pinned,
                        const SnapshotAnswer *answer);
/* Marks it: it is no longer found, and removed as soon as possible. */
void snapshot_doom(SnapshotEngine *engine, const char *name);

/* Opens a file for reading, by the name of layout_file_name() or the first one (""); usable on any
 * thread. */
int snapshot_open_file(const SnapshotEngine *engine, const SnapshotInfo *info, const char *file,
                       int *ret_fd, uint64_t *ret_bytes);
/* Removes snapshots that are too old; the engine calls it by itself now and then. */
void snapshot_expire(SnapshotEngine *engine);

typedef struct SnapshotUse {
    uint64_t used_bytes, limit_bytes;
    size_t n;
} SnapshotUse;
SnapshotUse snapshot_use(SnapshotEngine *engine);
