/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/sieve.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"

/* The cheapest question first; what a thread was called is worked out from its History. */

void sieve_done(Sieve *sieve) {
    free(sieve->cgroups);
    *sieve = (Sieve){};
}

static Bytes without_slash(const char *s, size_t n) {
    while (n > 0 && *s == '/') {
        s++;
        n--;
    }
    while (n > 0 && s[n - 1] == '/')
        n--;
    return (Bytes){.data = (const uint8_t *)s, .size = n};
}

static bool is_at_or_below(Bytes path, Bytes top) {
    return top.size == 0 || (path.size >= top.size && memcmp(path.data, top.data, top.size) == 0 &&
                             (path.size == top.size || path.data[top.size] == '/'));
}

static bool is_wanted_path(const Sieve *sieve, Bytes text) {
    Bytes path = without_slash((const char *)text.data, text.size);

    for (size_t i = 0; i < sieve->filter->n_cgroups; i++) {
        const char *wanted = sieve->filter->cgroups[i];

        if (is_at_or_below(path, without_slash(wanted, strlen(wanted))))
            return true;
    }
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
    bool wanted = is_wanted_path(sieve, cgroup->path);

    if (known && !wanted)
        *known = 0;
    if (known || !wanted)
        return 0;
    known = array_grow(&sieve->cgroups, &sieve->n_cgroups);
    if (!known)
        return -ENOMEM;
    *known = cgroup->id;
    return 0;
}

bool sieve_is_about_processes(const Sieve *sieve) {
    return sieve->filter->n_pids + sieve->filter->n_comms + sieve->filter->n_cgroups > 0;
}

bool sieve_wants_cpu(const Sieve *sieve, const PdStamp *stamp) {
    const uint8_t *cpus = sieve->filter->cpus;

    return !sieve->filter->by_cpu || (stamp->has_cpu && stamp->cpu < MANIFEST_CPUS_MAX &&
                                      cpus[stamp->cpu / 8] & 1 << stamp->cpu % 8);
}

static bool wants_pid(const SnapshotFilter *filter, const PdStamp *stamp) {
    for (size_t i = 0; i < filter->n_pids; i++)
        if (stamp->has_tid && filter->pids[i] == stamp->pid)
            return true;
    return filter->n_pids == 0;
}

static bool wants_comm(const SnapshotFilter *filter, const History *history, const PdStamp *stamp) {
    Bytes comm;

    if (filter->n_comms == 0)
        return true;
    /* The idle task has no record that names it. */
    comm = stamp->has_tid && stamp->tid != 0
               ? history_comm(history, stamp->pid, stamp->tid, stamp->time)
               : (Bytes){.data = (const uint8_t *)"swapper", .size = 7};
    for (size_t i = 0; i < filter->n_comms; i++)
        if (bytes_equal_str(comm, filter->comms[i]))
            return true;
    return false;
}

bool sieve_wants(const Sieve *sieve, const History *history, const PdStamp *stamp,
                 uint64_t cgroup) {
    const SnapshotFilter *filter = sieve->filter;

    return sieve_wants_cpu(sieve, stamp) && wants_pid(filter, stamp) &&
           (filter->n_cgroups == 0 || (cgroup != 0 && find_cgroup(sieve, cgroup))) &&
           wants_comm(filter, history, stamp);
}
