/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/ring/ring-set.h"

/* A process that has events for each thread. Its later forks inherited them. */
typedef struct Followed {
    uint32_t pid;
    uint64_t start_ns; /* 0: not known yet */
    uint64_t begin_ns; /* when opening began */
    uint32_t *tids;    /* in order */
    size_t n_tids;
    bool is_held; /* its samples have not begun yet */
    bool is_there;
} Followed;

struct Followers {
    Followed *items; /* by pid */
    size_t n;
    uint64_t since_ns; /* since when all running processes are followed; 0: not yet */
    bool is_adopted;   /* taken over: of some processes only the counters are known */
};

/* The processes that the set follows; never NULL. */
const Followers *followed_of(const RingSet *set);
/* The same, to change them; NULL without memory. */
Followers *followed_make(RingSet *set);
void followed_done(RingSet *set);
Followed *followed_find(const RingSet *set, uint32_t pid);
/* Takes ownership of the tids and replaces a process of the same pid; NULL without memory. */
Followed *followed_add(RingSet *set, const Followed *followed);
void followed_forget(RingSet *set, Followed *followed);
bool followed_has_tid(const Followed *followed, int32_t tid);
/* For qsort(). */
int followed_compare_tids(const void *a, const void *b);
