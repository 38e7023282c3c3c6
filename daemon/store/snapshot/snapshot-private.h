/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files behind snapshot-engine.h share. `mutex` guards the lists; only the main thread
 * changes `kept`, so it reads it without. It may be held when the store's is taken, never the other
 * way round.
 */

#include <pthread.h>

#include "store/folder/store-private.h"
#include "store/snapshot/snapshot-build.h"
#include "store/snapshot/snapshot-engine.h"

enum {
    SNAPSHOT_WORKERS = 2,
    SNAPSHOT_WAITING_MAX = 32,
    SNAPSHOT_WAITING_UID_MAX = 8,
    SNAPSHOT_LEAST_BYTES = 256 * 1024, /* that one of an unprivileged user counts as */
    SNAPSHOT_LEAST_PART = 64,          /* but no more than this part of what all may take */
    SNAPSHOT_FILE_MAX = SNAPSHOT_NAME_MAX + 16, /* a name in the folder, with its NUL */
};

#define SNAPSHOT_DATA     ".perf.data"
#define SNAPSHOT_MANIFEST ".json"

typedef enum Fate {
    FATE_STAYS,
    FATE_EXPIRED,  /* it goes as soon as the housekeeper has room: it is too old */
    FATE_UNWANTED, /* likewise: who asked for it is gone, or its files are */
} Fate;

typedef struct Kept {
    struct Kept *next;
    SnapshotInfo info;
    bool privileged; /* who made it */
    bool changes;    /* the housekeeper has it */
    bool lost;       /* somebody deleted its folder; with the mutex */
    Fate fate;
} Kept;

typedef enum JobState { JOB_WAITS, JOB_RUNS, JOB_ENDED } JobState;

struct Snapshot {
    Snapshot *next;
    SnapshotEngine *engine;
    JobState state;
    uint64_t order; /* whose turn it is */
    SnapshotCallbacks callbacks;
    bool abandoned; /* nobody waits for it any more */
    WindowQuery query;
    SnapshotFilter filter; /* its lists are owned */
    BuildProgress progress;
    _Atomic bool progressed;
    uint64_t bytes; /* so far */
    Kept *kept;     /* what becomes of it */
    int zstd_level;
    bool keep_frames;
    bool chooses_name; /* nobody gave it one */
    bool failed;
    SnapshotFailure failure;
};

struct SnapshotEngine {
    Store *store;
    Loop *loop;
    Housekeeper *housekeeper;
    LoopSource *wakeup, *timer;
    int event; /* readable when a worker ended a job or got on with it */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t workers[SNAPSHOT_WORKERS];
    size_t n_workers;
    bool ending;
    int folder; /* set once; what it leads to may be replaced */
    Kept *kept; /* by name */
    Snapshot *jobs;
    uint64_t clock, counter;
    char path[CONFIG_PATH_MAX * 4]; /* of the snapshot that was last described */
};

/* snapshot-codec.c */
int snapshot_manifest_encode(const Kept *kept, Buffer *out);
/* Strict: -EBADMSG; *ret is then of no use. */
int snapshot_manifest_decode(Bytes json, Kept *ret);
int snapshot_write_manifest(int folder, const Kept *kept);
int snapshot_read_manifest(int folder, const char *name, Kept *ret);

/* snapshot-name.c */
void snapshot_data_name(const SnapshotInfo *info, char ret[SNAPSHOT_FILE_MAX]);
void snapshot_manifest_name(const char *name, char ret[SNAPSHOT_FILE_MAX]);

/* snapshot-naming.c */
/* Among the snapshots of the engine; only a worker looks for other files in the folder. */
bool snapshot_name_is_taken(SnapshotEngine *engine, const char *name);
/* With the mutex held: a name that no other snapshot has. *number is the one that was tried last.
 */
void snapshot_make_name(SnapshotEngine *engine, const SnapshotInfo *info, unsigned *number,
                        char ret[SNAPSHOT_NAME_MAX]);
/* On a worker: the next name for a job that chooses its own. */
void snapshot_next_name(Snapshot *job, unsigned *number);

/* snapshot-catalog.c */
/* What is in the folder; what a killed daemon left half made goes. */
int snapshot_list_load(SnapshotEngine *engine);
void snapshot_list_free(SnapshotEngine *engine);
/* Takes it over. */
void snapshot_list_add(SnapshotEngine *engine, Kept *kept);
Kept *snapshot_list_find(SnapshotEngine *engine, const char *name);

/* snapshot-budget.c */
/* Updates in the store what all snapshots take. */
void snapshot_list_account(SnapshotEngine *engine);
/* With the mutex held: whether the job may take so many bytes; -EDQUOT with *ret_why. */
int snapshot_budget(const SnapshotEngine *engine, const Snapshot *job, uint64_t bytes,
                    SnapshotFailure *ret_why);

/* snapshot-change.c */
/* From the disk alone; not on the main thread while it runs. */
int snapshot_delete(SnapshotEngine *engine, const Kept *kept);
/* As many of those that are to go as the housekeeper has room for. */
void snapshot_remove_doomed(SnapshotEngine *engine);

/* snapshot-job.c, on a worker */
void snapshot_job_run(Snapshot *job);
