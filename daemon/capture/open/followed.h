/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/ring/ring-set.h"

/* A process that events were opened for, thread by thread. What it forked since inherited them. */
typedef struct Followed {
    uint32_t pid;
    uint64_t start_ns; /* 0: not known yet */
    uint64_t begin_ns; /* of opening */
    uint32_t *tids;    /* in order */
    size_t n_tids;
    bool is_held; /* its samples do not begin yet */
    bool is_there;
} Followed;

struct Followers {
    Followed *items; /* by pid */
    size_t n;
    uint64_t since_ns; /* when all that ran were followed; 0: not yet */
    bool is_adopted;   /* of some of those that are followed only the counters are known */
};

/* Those of the set, never NULL. */
const Followers *followed_of(const RingSet *set);
/* The same, to change them; NULL without memory. */
Followers *followed_make(RingSet *set);
void followed_done(RingSet *set);
Followed *followed_find(const RingSet *set, uint32_t pid);
/* Takes over the tids, in the place of one that had the same pid; NULL without memory. */
Followed *followed_add(RingSet *set, const Followed *followed);
void followed_forget(RingSet *set, Followed *followed);
bool followed_has_tid(const Followed *followed, int32_t tid);
/* For qsort(). */
int followed_compare_tids(const void *a, const void *b);
