/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which threads are known from the side-band of the segments so far, and up to what time: a bounded
 * table by pid and tid.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/hash-index.h"

typedef struct KnownThread {
    uint32_t pid, tid;  /* tid == pid: the entry of the process */
    uint32_t part;      /* the last segment that stated its beginning; counted from 1 */
    uint64_t known_ns;  /* an earlier segment held its records up to this time */
    uint64_t exec_ns;   /* when its replaced state began, until a COMM names it; 0: none */
    bool reborn;        /* its state was replaced by a new one */
    uint64_t reborn_ns; /* at this time; threads from before it are forgotten */
    uint64_t stated_ns;
    uint64_t begun_ns; /* the latest time at which it began */
} KnownThread;

typedef struct KnownTable {
    KnownThread *rows;
    HashIndex index;
} KnownTable;

void known_done(KnownTable *table);
/* NULL: it is not known. */
KnownThread *known_find(const KnownTable *table, uint32_t pid, uint32_t tid);
/* Adds it if it is missing; NULL: the table is full. May move other rows. */
KnownThread *known_get(KnownTable *table, uint32_t pid, uint32_t tid);
