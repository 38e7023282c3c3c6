/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files behind store.h share; nobody else includes it, but tests that turn its clock.
 *
 * Two locks. `mutex` guards the lists and figures and is never held across I/O, since the main
 * thread takes it. `disk` is held by whoever deletes, reopens or surveys, one at a time. A writer
 * takes disk before mutex, and a session's own mutex on its own.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "store/folder/store.h"
#include "store/manifest/manifest.h"

enum { STORE_BOOT_SIZE = 64, ENTRY_GAPS_MAX = 4 };

/* A segment that nobody writes. */
typedef struct Entry {
    SegmentName name; /* SEGMENT_OPEN: left by a killed daemon, not yet recovered */
    bool directory;
    bool stuck;      /* could not be deleted or mended; not tried again before the next survey */
    bool is_known;   /* its manifest was read, and what follows is filled in */
    bool unreadable; /* the manifest is missing or bad */
    bool unsealed;   /* finished, and still the recorder's; see late-seal.c */
    bool timed;      /* end_real_ns can be believed */
    bool this_boot;
    uint64_t bytes;
    uint64_t end_real_ns, end_boot_ns, duration_ns, samples, lost, raw_bytes;
    uint64_t first_ns, last_ns;           /* of its samples, by CLOCK_MONOTONIC */
    uint64_t first_real_ns, last_real_ns; /* the same by CLOCK_REALTIME */
    Completeness completeness;
    bool sensitive;
    bool covered; /* what follows is known; by CLOCK_MONOTONIC */
    uint64_t covered_from_ns, covered_to_ns;
    uint64_t real_shift_ns; /* what makes the time of day of it, modulo 2^64 */
    PdGapReason after;
    PdGap gaps[ENTRY_GAPS_MAX]; /* of many the nearest are one */
    size_t n_gaps;
    char boot[STORE_BOOT_SIZE];
} Entry;

/* Nothing was recorded into it, and it does not say when: its recorder was killed as it began. */
static inline bool entry_is_blank(const Entry *entry) {
    return entry->is_known && !entry->unreadable && entry->samples == 0 && !entry->covered &&
           entry->name.state == SEGMENT_CLOSED;
}

typedef struct Folder {
    struct Folder *next;
    char name[CONFIG_NAME_MAX];
    StoreSession *session; /* that claims it; NULL: none */
    int fd;
    Entry *entries; /* by number */
    size_t n_entries, n_allocated;
    uint64_t bytes;      /* of all entries */
    uint64_t open_bytes; /* of the segment that is being written */
    uint64_t next_number;
    uint64_t max_use_bytes, max_retention_ns; /* 0: those of the whole */
    uint32_t max_segments;                    /* 0: any number */
    uint64_t surveyed_ns;                     /* CLOCK_BOOTTIME */
    double forecast_bytes;                    /* reach.c's, while it works */
    bool sensitive;                           /* of the session that claims it */
    bool runtime;                             /* the session is of no configuration */
    bool claimed;                             /* a session's, whose writer alone adds entries */
    bool stray;     /* no session's, and being recovered by the writer of another */
    bool abandoned; /* the last session could not finish what it wrote */
    bool recovered; /* the newest one that was left open is */
} Folder;

/* The time of day that is believed; see retention.c. */
typedef struct BelievedClock {
    ClockAnchor base;
    uint64_t distrusted_since_ns; /* CLOCK_BOOTTIME; 0: not doubted */
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
    uint64_t doomed_bytes; /* taken out of a list, not yet deleted */
    StoreLease *leases;
    uint64_t leased_bytes;   /* without a name, but still read */
    uint64_t snapshot_bytes; /* of snapshots, made and being made */
    uint64_t fs_total, fs_free;
    uint64_t fs_inodes, fs_free_inodes; /* 0 in all: the file system has no limit of them */
    BelievedClock believed;
    uint64_t max_use_bytes, keep_free_bytes, min_use_bytes, max_retention_ns, sync_interval_ns;
    uint64_t snapshot_max_bytes, snapshot_retention_ns;
    unsigned n_abandoned; /* writers that hang in the kernel and still use all this */
};

/* store-open.c */
int store_take_lock(Store *store, int root, int *ret_fd);
/* Opens the folder again if it was deleted or moved away. */
int store_reopen(Store *store, Folder *folder);
/* Returns a descriptor of the folder `snapshots` if it is another folder than `current` by now.
 * -EALREADY: it is the same. */
int store_reopen_snapshots(Store *store, int current);

/* folder-entry.c */
/* A copy of the descriptor, since the folder may be opened again meanwhile. */
int store_folder_fd(Store *store, Folder *folder);
/* With the mutex held. NULL: no folder has this name. */
Folder *store_folder(Store *store, const char *name);
/* With the mutex held; by number. NULL: memory. */
Entry *folder_insert(Folder *folder, const Entry *entry);
Entry *folder_find(Folder *folder, const SegmentName *name);
void folder_remove(Folder *folder, Entry *entry);
void folder_configure(Folder *folder, const SessionConfig *config);
Folder *folder_free(Folder *folder);

/* survey.c */
/* Opens the folder of a session, makes it if it is missing, and lists it. */
int store_folder_new(Store *store, const char *name, Folder **ret);
int store_survey(Store *store);
/* Lists the folder anew and takes over what differs. */
int folder_survey(Store *store, Folder *folder);
/* Fills in what the manifest says. */
void entry_fill(const Store *store, Entry *entry, const Manifest *manifest);
/* Fills in *entry, and the folder's entry of that name, from its manifest, which is read once.
 * False: the segment is gone meanwhile. */
bool folder_know(Store *store, Folder *folder, Entry *entry);

/* recovery.c: what a killed daemon left open in the folder, newest first. */
void folder_recover(Store *store, Folder *folder);
/* The folders that no session claims, one a call; false: there is none. */
bool store_recover_stray(Store *store);
/* Writes manifests that lack, one a call; false: there is none. */
bool folder_mend_manifest(Store *store, Folder *folder);

/* late-seal.c: segments that a survey found unsealed, one a call; false: there is none. */
bool store_seal_late(Store *store);

/* retention.c, with the mutex held. */
uint64_t store_used_bytes(const Store *store);
uint64_t store_limit_bytes(const Store *store);
/* What sessions that are of no configuration may have of it together. */
uint64_t store_runtime_limit_bytes(const Store *store);
/* A share of the whole, the same for each session (of those at runtime) that has something, but for
 * those with a limit of their own. Where bytes are to go, the session gives them that is furthest
 * over its share. */
uint64_t store_share_bytes(const Store *store, const Folder *folder, uint64_t limit, bool runtime);
void store_set_budget(Store *store, const Config *config);
/* Without it: asks the file system. */
void store_measure(Store *store);
bool store_is_over(Store *store);
/* The file system has hardly any inodes left, with or without bytes. */
bool store_lacks_inodes(const Store *store);
/* The time of day, as it would be had nobody set the clock since it was last believed. */
uint64_t store_believed_real_ns(const Store *store, const ClockAnchor *now);

/* lease.c, with the mutex held: a segment lost its name; true: its bytes count with a lease. */
bool store_lease_keep(Store *store, const char *session, uint64_t number, uint64_t bytes);
