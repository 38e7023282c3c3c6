/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which threads segments told of, and how far: a table by pid and tid, bounded. */

#include <stdbool.h>
#include <stdint.h>

#include "util/macro.h"

typedef struct Told {
    uint32_t pid, tid;  /* tid == pid: the process */
    uint32_t part;      /* the last segment that began with it; counted from 1 */
    uint64_t known_ns;  /* what is not younger was told by a segment before */
    uint64_t exec_ns;   /* its state came as a new one at that time, and is not named yet */
    bool reborn;        /* its state came as a new one once, */
    uint64_t reborn_ns; /* and threads that were told before are forgotten */
    uint64_t stated_ns;
    uint64_t begun_ns; /* the last time of which it was begun */
} Told;

typedef struct ToldTable {
    Told *rows; /* open addressing; part 0: free */
    size_t n, n_allocated;
    uint64_t seed;
} ToldTable;

void told_done(ToldTable *table);
/* NULL: nothing was told. */
Told *told_find(const ToldTable *table, uint32_t pid, uint32_t tid);
/* Made where it lacks; NULL: there is no room for more. Others may move. */
Told *told_get(ToldTable *table, uint32_t pid, uint32_t tid);
