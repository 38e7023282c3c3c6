/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which threads are known from the side-band of the segments so far, and up to when: a bounded
 * table by pid and tid.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct KnownThread {
    uint32_t pid, tid;  /* tid == pid: the process */
    uint32_t part;      /* the last segment that began with it; counted from 1 */
    uint64_t known_ns;  /* a segment before held what is not younger */
    uint64_t exec_ns;   /* its state came as a new one at that time, and is not named yet */
    bool reborn;        /* its state came as a new one once, */
    uint64_t reborn_ns; /* and threads of the time before are forgotten */
    uint64_t stated_ns;
    uint64_t begun_ns; /* the last time of which it was begun */
} KnownThread;

typedef struct KnownTable {
    KnownThread *rows; /* open addressing; part 0: free */
    size_t n, n_allocated;
    uint64_t seed;
} KnownTable;

void known_done(KnownTable *table);
/* NULL: it is not known. */
KnownThread *known_find(const KnownTable *table, uint32_t pid, uint32_t tid);
/* Made where it lacks; NULL: there is no room for more. Others may move. */
KnownThread *known_get(KnownTable *table, uint32_t pid, uint32_t tid);
