/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/sieve.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"

/* The cheapest question first; what a thread was called is worked out from its History. */

void sieve_done(Sieve *sieve) {
    mismatch_done(&sieve->mismatch);
    free(sieve->cgroups);
    *sieve = (Sieve){};
}

static uint64_t *find_cgroup(const Sieve *sieve, uint64_t id) {
    for (size_t i = 0; i < sieve->n_cgroups; i++)
        if (sieve->cgroups[i] == id)
            return &sieve->cgroups[i];
    return NULL;
}

int sieve_hear(Sieve *sieve, const PdCgroup *cgroup) {
    uint64_t *known = find_cgroup(sieve, cgroup->id);
    bool wanted = selection_has_group(sieve->filter, cgroup->path);

    if (known && !wanted)
        *known = 0;
    if (!wanted)
        return sieve->any ? 0 : mismatch_add_group(&sieve->mismatch, cgroup);
    if (known)
        return 0;
    known = array_grow(&sieve->cgroups, &sieve->n_cgroups);
    if (!known)
        return -ENOMEM;
    *known = cgroup->id;
    return 0;
}

bool sieve_is_about_processes(const Sieve *sieve) {
    return selection_kinds(sieve->filter) & ~(unsigned)SELECTION_CPU;
}

bool sieve_wants_cpu(const Sieve *sieve, const PdStamp *stamp) {
    return !sieve->filter->by_cpu ||
           (stamp->has_cpu && selection_has_cpu(sieve->filter, stamp->cpu));
}

static bool wants_pid(const SnapshotFilter *filter, const PdStamp *stamp) {
    return filter->n_pids == 0 || (stamp->has_tid && selection_has_pid(filter, stamp->pid));
}

static bool wants_tid(const SnapshotFilter *filter, const PdStamp *stamp) {
    return filter->n_tids == 0 || (stamp->has_tid && selection_has_tid(filter, stamp->tid));
}

static Bytes comm_of(const History *history, const PdStamp *stamp) {
    /* The idle task has no record that names it. */
    if (!stamp->has_tid || stamp->tid == 0)
        return (Bytes){.data = (const uint8_t *)"swapper", .size = 7};
    return history_comm(history, stamp->pid, stamp->tid, stamp->time);
}

static bool wants_cgroup(const Sieve *sieve, uint64_t cgroup) {
    return sieve->filter->n_cgroups + sieve->filter->n_units == 0 ||
           (cgroup != 0 && find_cgroup(sieve, cgroup));
}

/* No sample was wanted yet: the one that is not says what there is instead. */
static bool wants_first(Sieve *sieve, const History *history, const PdStamp *stamp,
                        uint64_t cgroup) {
    const SnapshotFilter *filter = sieve->filter;
    unsigned asked = selection_kinds(filter), passed;
    Bytes comm = filter->n_comms > 0 ? comm_of(history, stamp) : (Bytes){};

    passed = (sieve_wants_cpu(sieve, stamp) ? SELECTION_CPU : 0) |
             (wants_pid(filter, stamp) ? SELECTION_PID : 0) |
             (wants_tid(filter, stamp) ? SELECTION_TID : 0) |
             (selection_has_comm(filter, comm) ? SELECTION_COMM : 0) |
             (wants_cgroup(sieve, cgroup) ? SELECTION_GROUP : 0);
    sieve->any = (asked & ~passed) == 0;
    if (!sieve->any)
        mismatch_add_sample(&sieve->mismatch, filter, passed, comm, cgroup);
    return sieve->any;
}

bool sieve_wants(Sieve *sieve, const History *history, const PdStamp *stamp, uint64_t cgroup) {
    const SnapshotFilter *filter = sieve->filter;

    if (!sieve->any)
        return wants_first(sieve, history, stamp, cgroup);
    return sieve_wants_cpu(sieve, stamp) && wants_pid(filter, stamp) && wants_tid(filter, stamp) &&
           wants_cgroup(sieve, cgroup) &&
           (filter->n_comms == 0 || selection_has_comm(filter, comm_of(history, stamp)));
}
