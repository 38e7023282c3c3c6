/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The store has a folder for each session, a file or folder for each segment, and a manifest next
 * to each segment. Only one daemon uses a store at a time. The Store holds the lock, the budget and
 * the list of segments. All functions belong to the main thread unless their comment says
 * otherwise.
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

/* Limits for memory that are lower than the defaults; 0: the default. */
typedef struct StoreMemory {
    uint64_t queue_bytes; /* for the queues of all sessions */
    uint64_t table_bytes; /* for the process table of a snapshot */
    uint64_t store_bytes; /* for the whole store when Storage=volatile */
} StoreMemory;

typedef struct StoreOptions {
    const char *path; /* created if it is missing */
    /* Borrowed until store_free(), and read by writers, so do not change it. */
    const PdEnvironment *environment;
    const Config *config; /* budgets; copied */
    StoreMemory memory;
    SealFunction seal; /* NULL: files keep their owner */
    /* Called on a writer thread when a sweep was written (see store_session_listen()) or a segment
     * was finished; may be NULL. */
    void (*on_written)(void *userdata);
    void *userdata;
} StoreOptions;

/* Takes the lock (-EBUSY: another daemon has it, which is logged) and lists the segments. The
 * writer of a session first finishes what a killed daemon left open. */
int store_open(const StoreOptions *options, Store **ret);
/* All sessions must be closed. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free);
/* Applies new budgets after a reload. */
void store_configure(Store *store, const Config *config);

enum { STORE_GAPS_MAX = 16 };

/* Which part of a time span was recorded, in CLOCK_REALTIME. */
typedef struct StoreCoverage {
    bool is_known;
    uint64_t since_ns, until_ns;
    uint64_t recorded_ns;       /* the part of it recorded on every online CPU */
    PdGap gaps[STORE_GAPS_MAX]; /* when there are more, close ones are merged */
    size_t n_gaps;
} StoreCoverage;

typedef struct StoreUse {
    uint64_t used_bytes, limit_bytes, free_bytes;
    /* How far back a full store will reach at the present rates, for the configured session with
     * the shortest reach; 0: unknown. */
    uint64_t reach_ns;
} StoreUse;
StoreUse store_use(Store *store);
/* Whether the full store will hold less than least_ns of this session, or less than its limits of
 * age and count ask for, if that is shorter; false also if that is unknown. */
bool store_session_is_short(Store *store, const char *name, uint64_t least_ns);
/* How far back the full store will reach for this session at the present rates; 0: unknown, or
 * without a limit. */
uint64_t store_session_reach_ns(Store *store, const char *name);
/* The id of this boot, as the manifests of its segments have it. */
const char *store_boot(const Store *store);
/* Deletes what exceeds the budgets, oldest first. Writers call it by themselves. */
int store_vacuum(Store *store);

typedef struct StoreLimits {
    uint64_t max_bytes;           /* of all segments; UINT64_MAX: no limit */
    uint64_t max_age_ns;          /* 0: no limit */
    uint64_t max_segments;        /* of each session; 0: no limit */
    const atomic_bool *is_enough; /* when it becomes true, deletion stops; may be NULL */
} StoreLimits;
/* Deletes the oldest segments until these limits hold too. Runs on any thread, takes as long as the
 * disk does, and lets writers have their turn in between. */
int store_vacuum_to(Store *store, const StoreLimits *limits, uint64_t *ret_removed,
                    uint64_t *ret_bytes);
