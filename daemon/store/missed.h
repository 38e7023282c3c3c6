/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Explains a snapshot whose filters no sample of its window passes. */

#include "process/history.h"
#include "store/snapshot.h"
#include "util/near.h"

/* The kinds of filter; a set. */
typedef enum FilterKind {
    FILTER_PID = 1 << 0,
    FILTER_TID = 1 << 1,
    FILTER_COMM = 1 << 2,
    FILTER_GROUP = 1 << 3,
    FILTER_CPU = 1 << 4,
} FilterKind;

enum { MISSED_COMMS = 64, MISSED_COMM_MAX = 16 };

typedef struct MissedGroup {
    uint64_t id;
    char *path;
    bool offered;
} MissedGroup;

typedef struct Missed {
    unsigned passed; /* the filters that some sample of the window passes */
    MissedGroup *groups;
    size_t n_groups;
    char comms[MISSED_COMMS][MISSED_COMM_MAX]; /* seen lately, by their hash */
    NearNames near_comms, near_groups;
} Missed;

/* Which kinds of filter were given. */
unsigned missed_asked(const SnapshotFilter *filter);
/* A group that is not wanted. */
int missed_hear(Missed *missed, const PdCgroup *cgroup);
/* A sample that is not wanted: the filters that it passes, and what it is of. */
void missed_note(Missed *missed, const SnapshotFilter *filter, unsigned passed, Bytes comm,
                 uint64_t cgroup);
/* Which filters match nothing: "cgroup 'shop.service'"; and the names that were probably meant. */
void missed_explain(const Missed *missed, const SnapshotFilter *filter, SnapshotFailure *ret);
void missed_done(Missed *missed);
