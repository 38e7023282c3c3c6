/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files behind store.h share; only tests that set its clock may include it too.
 *
 * There are two locks. `mutex` protects the lists and sums and is never held across I/O, because
 * the main thread takes it. `disk` is held by a thread that deletes, reopens or surveys, so that
 * only one does. A writer takes `disk` before `mutex`, and the mutex of a session alone.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "store/folder/store.h"
#include "store/manifest/manifest.h"
#include "util/clock.h"

enum { STORE_BOOT_SIZE = 64, ENTRY_GAPS_MAX = 4 };

/* A segment. Those in the list of a folder are not being written. */
typedef struct Entry {
    SegmentName name; /* SEGMENT_OPEN: left by its writer and not recovered, unless is_written */
    bool directory;
    bool is_written; /* it is the view of a segment that is being written */
    bool stuck;      /* deleting it failed, and is not tried again before the next survey; or
                      * recovering it, see Folder.retry_ns */
    bool is_known;   /* its manifest was read and the fields below are filled in */
    bool unreadable; /* the manifest is missing or bad */
    bool unsealed;   /* finished but not sealed; see late-seal.c */
    bool timed;      /* end_real_ns can be trusted */
    bool this_boot;
    uint64_t bytes;
    uint64_t end_real_ns, end_boot_ns, duration_ns, samples, lost, raw_bytes;
    uint64_t first_ns, last_ns;           /* of its samples, by CLOCK_MONOTONIC */
    uint64_t first_real_ns, last_real_ns; /* the same by CLOCK_REALTIME */
    StoreStacks stacks;
    Completeness completeness;
    bool sensitive;
    bool covered; /* the fields below are known; in CLOCK_MONOTONIC */
    uint64_t covered_from_ns, covered_to_ns;
    uint64_t real_shift_ns; /* add it to get wall-clock time, modulo 2^64 */
    uint64_t slept_ns; /* how long the machine has slept since it booted; UINT64_MAX: unknown */
    PdGapReason after;
    PdGap gaps[ENTRY_GAPS_MAX]; /* when there are more, close ones are merged */
    size_t n_gaps;
    char boot[STORE_BOOT_SIZE];
} Entry;

/* The segment has no samples and no span, because its recorder was killed when it began. */
static inline bool entry_is_blank(const Entry *entry) {
    return entry->is_known && !entry->unreadable && entry->samples == 0 && !entry->covered &&
           entry->name.state == SEGMENT_CLOSED;
}

/* Whether the machine slept between two segments that follow each other; the clock of samples stood
 * still meanwhile, so they may be adjacent on it. A second is more than two measurements differ. */
static inline bool entry_slept_between(const Entry *before, const Entry *next) {
    return next->slept_ns != UINT64_MAX && strcmp(before->boot, next->boot) == 0 &&
           next->slept_ns > before->slept_ns && next->slept_ns - before->slept_ns > NS_PER_SECOND;
}

/* Its samples can be read: it is finished, or it is being written. */
static inline bool entry_is_readable(const Entry *entry) {
    return entry->is_known && !entry->unreadable &&
           (entry->name.state == SEGMENT_CLOSED || entry->is_written);
}

typedef struct Folder {
    struct Folder *next;
    char name[CONFIG_NAME_MAX];
    StoreSession *session; /* the session that claims it; NULL: none */
    int fd;
    Entry *entries; /* sorted by number */
    size_t n_entries, n_allocated;
    uint64_t bytes;      /* of all entries */
    uint64_t open_bytes; /* of the open segment */
    uint64_t next_number;
    uint64_t max_use_bytes, max_retention_ns; /* 0: only the limits of the whole store apply */
    uint32_t max_segments;                    /* 0: no limit */
    uint64_t surveyed_ns;                     /* CLOCK_BOOTTIME of the last survey */
    double forecast_bytes;                    /* used by reach.c while it computes */
    bool sensitive;                           /* of the session that claims it */
    bool runtime;                             /* the session is not in the configuration */
    bool claimed;                             /* a session has it; only that session's writer
                                               * adds entries */
    bool stray;     /* no session has it; another session's writer recovers it */
    bool abandoned; /* the last session could not finish its segment */
    bool recovered; /* recovery of what was left open was tried */
    /* When to recover again what could not be, and the pause before that, which grows;
     * CLOCK_BOOTTIME. 0: nothing failed. */
    uint64_t retry_ns, retry_pause_ns;
} Folder;

/* The trusted wall clock; see retention.c. */
typedef struct BelievedClock {
    ClockAnchor base;
    uint64_t distrusted_since_ns; /* CLOCK_BOOTTIME; 0: it is trusted */
} BelievedClock;

struct Store {
    char *path;
    Seal seal;
    int root, sessions, lock;
    const PdEnvironment *environment;
    void (*on_written)(void *userdata);
    void *userdata;
    char boot[STORE_BOOT_SIZE];
    ClockAnchor (*now)(void);
    bool (*synchronised)(void);
    unsigned n_cpus;
    StoreMemory memory;
    _Atomic uint64_t queued_bytes; /* of all sessions */

    pthread_mutex_t disk, mutex;
    pthread_cond_t recovered;
    Folder *folders;
    StoreSession *open_sessions;
    uint64_t doomed_bytes; /* removed from a list but not yet deleted */
    LIST_HEAD(, StoreLease) leases;
    uint64_t leased_bytes;            /* deleted but still open by readers */
    uint64_t snapshot_bytes;          /* of snapshots, finished or in progress */
    uint64_t snapshot_oldest_real_ns; /* of their samples; 0: there is none */
    uint64_t binary_bytes;            /* of what names code */
    uint64_t fs_total, fs_free;
    uint64_t fs_inodes, fs_free_inodes; /* both 0: the file system does not limit them */
    BelievedClock believed;
    uint64_t max_use_bytes, keep_free_bytes, min_use_bytes, max_retention_ns, sync_interval_ns;
    uint64_t snapshot_max_bytes, snapshot_retention_ns, binaries_max_bytes;
    unsigned n_abandoned; /* writers that hang in the kernel and still use this struct */
};

/* How old a segment of the session may be; 0: no limit. */
static inline uint64_t store_retention_ns(const Store *store, const Folder *folder) {
    return folder->max_retention_ns && store->max_retention_ns
               ? MIN(folder->max_retention_ns, store->max_retention_ns)
               : folder->max_retention_ns + store->max_retention_ns;
}

/* In store-open.c: */
int store_take_lock(Store *store, int root, int *ret_fd);
/* Opens the folder again if it was deleted or moved. */
int store_reopen(Store *store, Folder *folder);
/* Returns a descriptor of the folder `snapshots` if it is no longer the folder `current`.
 * -EALREADY: it is the same folder. */
int store_reopen_snapshots(Store *store, int current);
/* The same for the folder `binaries`. */
int store_reopen_binaries(Store *store, int current);

/* In folder-entry.c: */
/* Returns a duplicate, since the folder may be reopened meanwhile. */
int store_folder_fd(Store *store, Folder *folder);
/* Call it with the mutex held. NULL: no folder has this name. */
Folder *store_folder(Store *store, const char *name);
/* Call it with the mutex held; keeps the entries sorted. NULL: no memory. */
Entry *folder_insert(Folder *folder, const Entry *entry);
Entry *folder_find(Folder *folder, const SegmentName *name);
void folder_remove(Folder *folder, Entry *entry);
void folder_configure(Folder *folder, const SessionConfig *config);
Folder *folder_free(Folder *folder);

/* In survey.c: */
/* Opens the folder of a session, creates it if it is missing, and lists it. */
int store_folder_new(Store *store, const char *name, Folder **ret);
int store_survey(Store *store);
/* Lists the folder again and updates the entries. */
int folder_survey(Store *store, Folder *folder);
/* Fills in the fields from the manifest. */
void entry_fill(const Store *store, Entry *entry, const Manifest *manifest);
/* Fills in *entry, and the folder's entry of that name, from the manifest, which is read once.
 * False: the segment is gone. */
bool folder_know(Store *store, Folder *folder, Entry *entry);

/* In recovery.c: recovers what was left open in the folder, newest first. */
void folder_recover(Store *store, Folder *folder);
/* The same for what could not be recovered, after a pause; false: there is nothing to do now. */
bool folder_recover_again(Store *store, Folder *folder);
/* Recovers one folder that no session claims; false: there is none left. */
bool store_recover_stray(Store *store);
/* Writes one missing manifest; false: none is missing. */
bool folder_mend_manifest(Store *store, Folder *folder);

/* In late-seal.c: seals one segment that a survey found unsealed; false: there is none left. */
bool store_seal_late(Store *store);

/* In retention.c: */
/* The wall-clock time of the oldest sample of all segments; 0: it is not known. */
uint64_t store_oldest_real_ns(Store *store);
/* These with the mutex held. */
uint64_t store_used_bytes(const Store *store);
uint64_t store_limit_bytes(const Store *store);
/* The limit for all sessions together that are not in the configuration. */
uint64_t store_runtime_limit_bytes(const Store *store);
/* The share of a session: an equal part of the whole for each session (or each runtime session)
 * that has segments, except those with a limit of their own. When space is needed, the session that
 * exceeds its share the most gives it. The first looks at all sessions. */
uint64_t store_equal_share(const Store *store, uint64_t limit, bool runtime);
uint64_t folder_share_bytes(const Folder *folder, uint64_t equal_share);
void store_set_budget(Store *store, const Config *config);
/* Asks the file system for its free space; call it without the mutex. */
void store_measure(Store *store);
bool store_is_over(Store *store);
/* The file system is running out of inodes, whatever its free bytes. */
bool store_lacks_inodes(const Store *store);
/* The wall-clock time as if nobody had set the clock since it was last trusted. */
uint64_t store_believed_real_ns(const Store *store, const ClockAnchor *now);

/* In lease.c, with the mutex held: a segment was deleted; true: its bytes now count with a
 * lease. */
bool store_lease_keep(Store *store, const char *session, uint64_t number, uint64_t bytes);
