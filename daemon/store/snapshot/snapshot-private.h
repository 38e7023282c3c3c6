/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files behind snapshot-engine.h share. `mutex` protects the lists; only the main thread
 * changes `kept`, so it may read it without the mutex. The store's mutex may be taken while holding
 * it, never the other way round.
 */

#include <pthread.h>
#include <sys/queue.h>

#include "store/folder/store-private.h"
#include "store/snapshot/snapshot-build.h"
#include "store/snapshot/snapshot-engine.h"

enum {
    SNAPSHOT_WORKERS = 2,
    SNAPSHOT_WAITING_MAX = 32,
    SNAPSHOT_WAITING_UID_MAX = 8,
    SNAPSHOT_LEAST_BYTES = 256 * 1024, /* the minimum that a snapshot of an unprivileged user
                                        * counts as */
    SNAPSHOT_LEAST_PART = 64,          /* but at most this part of the limit for all */
    SNAPSHOT_FILE_MAX = SNAPSHOT_NAME_MAX + 16, /* a file name in the folder, with its NUL */
};

#define SNAPSHOT_DATA     ".perf.data"
#define SNAPSHOT_MANIFEST ".json"

typedef enum Fate {
    FATE_STAYS,
    FATE_EXPIRED,  /* too old; to be removed when the housekeeper has room */
    FATE_UNWANTED, /* the same, because its client or its files are gone */
} Fate;

typedef struct Kept {
    TAILQ_ENTRY(Kept) list;
    SnapshotInfo info;
    bool privileged;            /* made by an administrator */
    bool unsynchronised;        /* the wall clock was not synchronised when it was made */
    char boot[STORE_BOOT_SIZE]; /* in which it was made; "": unknown */
    uint64_t created_boot_ns;   /* CLOCK_BOOTTIME of that boot */
    uint64_t seen_boot_ns;      /* CLOCK_BOOTTIME when this daemon made or first listed it */
    bool changes;               /* the housekeeper is changing it */
    Fate fate;
    unsigned generation; /* of the folder that it was written to or found in */
} Kept;

typedef TAILQ_HEAD(KeptList, Kept) KeptList;

typedef enum JobState { JOB_WAITS, JOB_RUNS, JOB_ENDED } JobState;

struct Snapshot {
    LIST_ENTRY(Snapshot) list;
    SnapshotEngine *engine;
    JobState state;
    uint64_t order; /* its position in the queue */
    SnapshotCallbacks callbacks;
    bool abandoned; /* its client is gone */
    WindowQuery query;
    SnapshotFilter filter; /* owns its arrays */
    BuildProgress progress;
    _Atomic bool progressed;
    uint64_t bytes; /* written so far */
    Kept *kept;     /* the finished snapshot that it becomes */
    int zstd_level;
    bool keep_frames;
    bool chooses_name; /* the client gave no name */
    bool failed;
    SnapshotFailure failure;
};

struct SnapshotEngine {
    Store *store;
    Loop *loop;
    Worker *housekeeper;
    LoopSource *wakeup, *timer;
    int event; /* becomes readable when a worker finished a job or made progress */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t workers[SNAPSHOT_WORKERS];
    size_t n_workers;
    bool ending;
    int folder;                  /* set once; the folder behind it may be replaced with dup3() */
    pthread_mutex_t regain;      /* held by a worker that may replace it, also across I/O */
    _Atomic unsigned generation; /* of the folder; raised after each replacement */
    unsigned listed;             /* the generation that `kept` shows; of the main thread */
    bool is_listing;             /* the housekeeper lists it again; of the main thread */
    KeptList kept;               /* sorted by name */
    LIST_HEAD(, Snapshot) jobs;
    uint64_t clock, counter;
    char path[CONFIG_PATH_MAX * 4]; /* of the snapshot described last */
};

/* In snapshot-codec.c: */
int snapshot_manifest_encode(const Kept *kept, Buffer *out);
/* Strict: -EBADMSG; *ret is then unusable. */
int snapshot_manifest_decode(Bytes json, Kept *ret);
int snapshot_write_manifest(int folder, const Kept *kept);
int snapshot_read_manifest(int folder, const char *name, Kept *ret);

/* In snapshot-name.c: */
void snapshot_data_name(const SnapshotInfo *info, char ret[SNAPSHOT_FILE_MAX]);
void snapshot_manifest_name(const char *name, char ret[SNAPSHOT_FILE_MAX]);

/* In snapshot-naming.c: */
/* Checks the snapshots of the engine only; a worker checks for other files in the folder. */
bool snapshot_name_is_taken(SnapshotEngine *engine, const char *name);
/* Call it with the mutex held: chooses a name that no other snapshot has. *number is the last one
 * tried. */
void snapshot_make_name(SnapshotEngine *engine, const SnapshotInfo *info, unsigned *number,
                        char ret[SNAPSHOT_NAME_MAX]);
/* Called on a worker: chooses the next name for a job without a given name. */
void snapshot_next_name(Snapshot *job, unsigned *number);

/* In snapshot-age.c: */
/* `real_ns`: the trusted wall-clock time. */
uint64_t snapshot_age_ns(const Store *store, const Kept *kept, const ClockAnchor *now,
                         uint64_t real_ns);
/* CLOCK_REALTIME; 0: never. */
uint64_t snapshot_expires_ns(Store *store, const Kept *kept);

/* In snapshot-catalog.c: */
/* Adds what is in the folder to *to. At the start it deletes what a killed daemon left unfinished;
 * later it changes no name, since an unfinished snapshot may belong to a job. */
int snapshot_list_load(SnapshotEngine *engine, bool at_start, KeptList *to);
void snapshot_list_free(KeptList *list);
/* Takes ownership. */
void snapshot_list_add(KeptList *list, Kept *kept);
Kept *snapshot_list_find(SnapshotEngine *engine, const char *name);
/* Whether it was written or listed before the folder was replaced, and not looked for since. */
bool snapshot_is_lost(const SnapshotEngine *engine, const Kept *kept);

/* In snapshot-budget.c: */
/* Updates in the store how much all snapshots take. */
void snapshot_list_account(SnapshotEngine *engine);
/* Call it with the mutex held: whether the job may take this many bytes; -EDQUOT sets *ret_why. */
int snapshot_budget(const SnapshotEngine *engine, const Snapshot *job, uint64_t bytes,
                    SnapshotFailure *ret_why);

/* In snapshot-folder.c: */
/* Called on a worker: opens the folder again if it was deleted or replaced, so that the main thread
 * lists it again. */
int snapshot_folder_regain(SnapshotEngine *engine, unsigned *ret_generation);
/* Has the folder listed again if it was replaced; does nothing while that is going on. */
void snapshot_folder_list_again(SnapshotEngine *engine);

/* In snapshot-change.c: */
/* Deletes it from the disk only; not for the main thread while the loop runs. */
int snapshot_delete(SnapshotEngine *engine, const Kept *kept);
/* Removes as many of the marked ones as the housekeeper has room for. */
void snapshot_remove_doomed(SnapshotEngine *engine);

/* In snapshot-job.c, runs on a worker: */
void snapshot_job_run(Snapshot *job);
