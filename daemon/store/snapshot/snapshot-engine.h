/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Snapshots: a window of what a session recorded, cut record-exact over its segments (the open one
 * included) into a recording of its own in the store's folder `snapshots`. They are chosen, read
 * and written by threads of the engine; its callbacks run on the main thread, by the loop.
 *
 * NAME.perf.data is a file or a folder, NAME.json beside it describes it. While it is built,
 * and when it is transient, its name begins with a dot.
 *
 * All functions belong to the main thread.
 */

#include "loop/loop.h"
#include "store/folder/housekeeper.h"
#include "store/folder/store.h"
#include "store/window/snapshot-request.h"

typedef struct SnapshotEngine SnapshotEngine;
typedef struct Snapshot Snapshot; /* one that is being made */

typedef struct SnapshotInfo {
    char name[SNAPSHOT_NAME_MAX];
    const char *path; /* borrowed until the next call on the engine */
    char session[CONFIG_NAME_MAX];
    Layout layout;
    bool sensitive, pinned, transient;
    char reason[SNAPSHOT_TEXT_MAX];
    uint32_t uid;
    uint64_t created_ns, expires_ns; /* CLOCK_REALTIME; 0: never */
    uint64_t since_ns, until_ns;     /* of its samples, CLOCK_REALTIME; both 0 when there is none */
    uint64_t first_ns, last_ns;      /* the same by CLOCK_MONOTONIC */
    uint64_t samples, lost, bytes;
    uint64_t unidentified; /* files whose mappings have no build id */
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX]; /* why it is less than was asked for */
    size_t n_partial;
    StoreCoverage coverage; /* of the window as it was asked for */
    size_t n_files;         /* 1, or `data` and data.N of a folder */
} SnapshotInfo;

typedef struct SnapshotCallbacks {
    /* Of how much that has to be read so much is done; may be NULL. */
    void (*on_progress)(void *userdata, uint64_t done_bytes, uint64_t total_bytes);
    /* Once, the last call: either `failure` or `info`. The Snapshot is gone when it returns. */
    void (*on_done)(void *userdata, const SnapshotFailure *failure, const SnapshotInfo *info);
    void *userdata;
} SnapshotCallbacks;

/* Removes what a killed daemon left half made and lists what is there. Store and loop outlive it,
 * the housekeeper goes before it. */
int snapshot_engine_new(Store *store, Loop *loop, Housekeeper *housekeeper, SnapshotEngine **ret);
/* What is being made is given up, without a call. */
SnapshotEngine *snapshot_engine_free(SnapshotEngine *engine);
DEFINE_CLEANUP(SnapshotEngine *, snapshot_engine_free);

/* A letter or digit, then letters, digits, `.`, `_`, `-`, 64 at most. */
bool snapshot_name_is_valid(const char *name);

/*
 * Queues it. What is to be in it was written already: the caller has had the session sweep after
 * the window's end, and that sweep is written (store_session_written()). -EINVAL: a name that is
 * none, or a window that ends before it begins; -EEXIST: the name is taken; -EBUSY: too many wait,
 * or of this uid.
 */
int snapshot_begin(SnapshotEngine *engine, const SnapshotRequest *request,
                   const SnapshotCallbacks *callbacks, Snapshot **ret);
/* Nothing of it is kept, and no more calls come. Accepts and returns NULL. */
Snapshot *snapshot_cancel(Snapshot *snapshot);

/* Those that are finished and not transient, by name; fn may not change the list. A negative return
 * ends it. */
int snapshot_each(SnapshotEngine *engine, int (*fn)(void *userdata, const SnapshotInfo *info),
                  void *userdata);
/* Transient ones too. -ENOENT. */
int snapshot_find(SnapshotEngine *engine, const char *name, SnapshotInfo *ret);
/* What became of a change: 0 or a negative errno, and what it took on the disk. */
typedef struct SnapshotAnswer {
    void (*on_done)(void *userdata, int error, uint64_t bytes); /* may be NULL */
    void *userdata;
    bool privileged; /* has more of the housekeeper's room */
} SnapshotAnswer;
/* Begins it; the answer comes where 0 is returned. -ENOENT; -EBUSY: it changes already, or too many
 * changes wait. What others read of it they may finish. */
int snapshot_remove(SnapshotEngine *engine, const char *name, const SnapshotAnswer *answer);
int snapshot_set_pinned(SnapshotEngine *engine, const char *name, bool pinned,
                        const SnapshotAnswer *answer);
/* Is no longer found, and removed as soon as may be. */
void snapshot_doom(SnapshotEngine *engine, const char *name);

/* The name of file i: "" for a snapshot in one file, else "data", "data.0" … */
void snapshot_file_name(const SnapshotInfo *info, size_t i, char ret[16]);
/* Opens a file for reading, by such a name or the first one (""); on any thread. */
int snapshot_open_file(const SnapshotEngine *engine, const SnapshotInfo *info, const char *file,
                       int *ret_fd, uint64_t *ret_bytes);
/* Removes what is too old; now and then the engine does so by itself. */
void snapshot_expire(SnapshotEngine *engine);

typedef struct SnapshotUse {
    uint64_t used_bytes, limit_bytes;
    size_t n;
} SnapshotUse;
SnapshotUse snapshot_use(SnapshotEngine *engine);
