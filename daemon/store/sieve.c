/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/sieve.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"
#include "util/cgroup-path.h"

/* The cheapest question first; what a thread was called is worked out from its History. */

void sieve_done(Sieve *sieve) {
    missed_done(&sieve->missed);
    free(sieve->cgroups);
    *sieve = (Sieve){};
}

static bool is_wanted_path(const SnapshotFilter *filter, Bytes path) {
    for (size_t i = 0; i < filter->n_cgroups; i++)
        if (cgroup_path_matches(path, filter->cgroups[i]))
            return true;
    for (size_t i = 0; i < filter->n_units; i++)
        if (cgroup_unit_matches(path, filter->units[i]))
            return true;
    return false;
}

static uint64_t *find_cgroup(const Sieve *sieve, uint64_t id) {
    for (size_t i = 0; i < sieve->n_cgroups; i++)
        if (sieve->cgroups[i] == id)
            return &sieve->cgroups[i];
    return NULL;
}

int sieve_hear(Sieve *sieve, const PdCgroup *cgroup) {
    uint64_t *known = find_cgroup(sieve, cgroup->id);
    bool wanted = is_wanted_path(sieve->filter, cgroup->path);

    if (known && !wanted)
        *known = 0;
    if (!wanted)
        return sieve->any ? 0 : missed_hear(&sieve->missed, cgroup);
    if (known)
        return 0;
    known = array_grow(&sieve->cgroups, &sieve->n_cgroups);
    if (!known)
        return -ENOMEM;
    *known = cgroup->id;
    return 0;
}

bool sieve_is_about_processes(const Sieve *sieve) {
    return missed_asked(sieve->filter) & ~(unsigned)FILTER_CPU;
}

bool sieve_wants_cpu(const Sieve *sieve, const PdStamp *stamp) {
    const uint8_t *cpus = sieve->filter->cpus;

    return !sieve->filter->by_cpu || (stamp->has_cpu && stamp->cpu < MANIFEST_CPUS_MAX &&
                                      cpus[stamp->cpu / 8] & 1 << stamp->cpu % 8);
}

static bool is_among(const uint32_t *ids, size_t n, uint32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

static bool wants_pid(const SnapshotFilter *filter, const PdStamp *stamp) {
    return filter->n_pids == 0 ||
           (stamp->has_tid && is_among(filter->pids, filter->n_pids, stamp->pid));
}

static bool wants_tid(const SnapshotFilter *filter, const PdStamp *stamp) {
    return filter->n_tids == 0 ||
           (stamp->has_tid && is_among(filter->tids, filter->n_tids, stamp->tid));
}

static Bytes comm_of(const History *history, const PdStamp *stamp) {
    /* The idle task has no record that names it. */
    if (!stamp->has_tid || stamp->tid == 0)
        return (Bytes){.data = (const uint8_t *)"swapper", .size = 7};
    return history_comm(history, stamp->pid, stamp->tid, stamp->time);
}

static bool wants_comm(const SnapshotFilter *filter, Bytes comm) {
    for (size_t i = 0; i < filter->n_comms; i++)
        if (bytes_equal_str(comm, filter->comms[i]))
            return true;
    return filter->n_comms == 0;
}

static bool wants_cgroup(const Sieve *sieve, uint64_t cgroup) {
    return sieve->filter->n_cgroups + sieve->filter->n_units == 0 ||
           (cgroup != 0 && find_cgroup(sieve, cgroup));
}

/* No sample was wanted yet: the one that is not says what there is instead. */
static bool wants_first(Sieve *sieve, const History *history, const PdStamp *stamp,
                        uint64_t cgroup) {
    const SnapshotFilter *filter = sieve->filter;
    unsigned asked = missed_asked(filter), passed;
    Bytes comm = filter->n_comms > 0 ? comm_of(history, stamp) : (Bytes){};

    passed = (sieve_wants_cpu(sieve, stamp) ? FILTER_CPU : 0) |
             (wants_pid(filter, stamp) ? FILTER_PID : 0) |
             (wants_tid(filter, stamp) ? FILTER_TID : 0) |
             (wants_comm(filter, comm) ? FILTER_COMM : 0) |
             (wants_cgroup(sieve, cgroup) ? FILTER_GROUP : 0);
    sieve->any = (asked & ~passed) == 0;
    if (!sieve->any)
        missed_note(&sieve->missed, filter, passed, comm, cgroup);
    return sieve->any;
}

bool sieve_wants(Sieve *sieve, const History *history, const PdStamp *stamp, uint64_t cgroup) {
    const SnapshotFilter *filter = sieve->filter;

    if (!sieve->any)
        return wants_first(sieve, history, stamp, cgroup);
    return sieve_wants_cpu(sieve, stamp) && wants_pid(filter, stamp) && wants_tid(filter, stamp) &&
           wants_cgroup(sieve, cgroup) &&
           (filter->n_comms == 0 || wants_comm(filter, comm_of(history, stamp)));
}
