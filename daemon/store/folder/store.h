/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The store: it has a folder for each session, a file or folder for each segment, and a manifest
 * beside each. Only one daemon uses a store at a time. The Store has the lock, the budget and the
 * list of what lies there. All functions belong to the main thread, unless their comment names
 * another one.
 */

#include <stdatomic.h>

#include "config/config.h"
#include "perfdata/feature/coverage.h"
#include "perfdata/feature/environment.h"
#include "store/disk/seal.h"
#include "util/macro.h"

typedef struct Store Store;
typedef struct StoreSession StoreSession;
typedef struct StoreLease StoreLease;

/* Where less than usual may be held in memory; 0: as usual. */
typedef struct StoreMemory {
    uint64_t queue_bytes; /* what waits to be written, of all sessions */
    uint64_t table_bytes; /* of processes, for a snapshot */
    uint64_t store_bytes; /* of the whole, when Storage=volatile */
} StoreMemory;

typedef struct StoreOptions {
    const char *path; /* made where it lacks */
    /* Borrowed until store_free(), and read by writers: not to be changed meanwhile. */
    const PdEnvironment *environment;
    const Config *config; /* budgets; copied */
    StoreMemory memory;
    SealFunction seal; /* NULL: files stay as they are */
    /* A sweep was written (see store_session_written()), or a segment was finished. From a
     * writer thread; may be NULL. */
    void (*on_written)(void *userdata);
    void *userdata;
} StoreOptions;

/* Takes the lock (-EBUSY: another daemon has it, the log says which) and lists what is there. What
 * a killed daemon left open is finished by the writer of its session, first of all. */
int store_open(const StoreOptions *options, Store **ret);
/* When all sessions are closed. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free);
/* New budgets, from a reload. */
void store_configure(Store *store, const Config *config);

enum { STORE_GAPS_MAX = 16 };

/* What of a span of time was recorded, by CLOCK_REALTIME. */
typedef struct StoreCoverage {
    bool is_known;
    uint64_t since_ns, until_ns;
    uint64_t recorded_ns;       /* of it, on each CPU that was online */
    PdGap gaps[STORE_GAPS_MAX]; /* of many the nearest are one */
    size_t n_gaps;
} StoreCoverage;

typedef struct StoreUse {
    uint64_t used_bytes, limit_bytes, free_bytes;
    /* How far back a full store will reach at the present rates, in the configured session for
     * which that is least; 0: not known. */
    uint64_t reach_ns;
} StoreUse;
StoreUse store_use(Store *store);
/* The full store will not hold least_ns of this session, nor as long as its limits of age and
 * count ask for, if that is less; false: it will, or nobody knows. */
bool store_session_is_short(Store *store, const char *name, uint64_t least_ns);
/* Deletes what is beyond the budgets, oldest first. Writers do so by themselves. */
int store_vacuum(Store *store);

typedef struct StoreLimits {
    uint64_t max_bytes;           /* of all segments; UINT64_MAX: no limit */
    uint64_t max_age_ns;          /* 0: no limit */
    uint64_t max_segments;        /* of each session; 0: no limit */
    const atomic_bool *is_enough; /* when it becomes true the rest stays; may be NULL */
} StoreLimits;
/* Deletes the oldest until these hold too, on any thread: it takes as long as the disk does, while
 * others of the store have their turns. */
int store_vacuum_to(Store *store, const StoreLimits *limits, uint64_t *ret_removed,
                    uint64_t *ret_bytes);
