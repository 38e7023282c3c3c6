/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which samples a snapshot wants. */

#include "process/history/history.h"
#include "process/mismatch.h"
#include "store/snapshot/snapshot-engine.h"

typedef struct Sieve {
    const SnapshotFilter *filter; /* borrowed */
    uint64_t *cgroups;            /* ids whose path is wanted */
    size_t n_cgroups;
    bool any;          /* a sample was wanted */
    Mismatch mismatch; /* what there is instead, until then */
} Sieve;

void sieve_done(Sieve *sieve);
/* What an id means from now on. */
int sieve_hear(Sieve *sieve, const PdCgroup *cgroup);
/* It wants some processes or threads only. */
bool sieve_is_about_processes(const Sieve *sieve);
bool sieve_wants_cpu(const Sieve *sieve, const PdStamp *stamp);
bool sieve_wants(Sieve *sieve, const History *history, const PdStamp *stamp, uint64_t cgroup);
