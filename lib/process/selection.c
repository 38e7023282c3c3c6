/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/selection.h"

#include "util/cgroup-path.h"

/*
 * Defines what --pid, --tid, --comm, --cgroup, --unit and --cpu mean, both for snapshots and for
 * recordings that profctl reads. The lists are short, so a linear search is fast enough.
 */

unsigned selection_kinds(const Selection *s) {
    return (s->n_pids > 0 ? SELECTION_PID : 0) | (s->n_tids > 0 ? SELECTION_TID : 0) |
           (s->n_comms > 0 ? SELECTION_COMM : 0) |
           (s->n_cgroups + s->n_units > 0 ? SELECTION_GROUP : 0) | (s->by_cpu ? SELECTION_CPU : 0);
}

static bool selection_is_among(const uint32_t *ids, size_t n, uint32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return n == 0;
}

bool selection_has_pid(const Selection *s, uint32_t pid) {
    return selection_is_among(s->pids, s->n_pids, pid);
}

bool selection_has_tid(const Selection *s, uint32_t tid) {
    return selection_is_among(s->tids, s->n_tids, tid);
}

bool selection_has_comm(const Selection *s, Bytes comm) {
    for (size_t i = 0; i < s->n_comms; i++)
        if (bytes_equal_str(comm, s->comms[i]))
            return true;
    return s->n_comms == 0;
}

bool selection_has_group(const Selection *s, Bytes path) {
    for (size_t i = 0; i < s->n_cgroups; i++)
        if (cgroup_path_matches(path, s->cgroups[i]))
            return true;
    for (size_t i = 0; i < s->n_units; i++)
        if (cgroup_unit_matches(path, s->units[i]))
            return true;
    return s->n_cgroups + s->n_units == 0;
}

bool selection_has_cpu(const Selection *s, uint32_t cpu) {
    return !s->by_cpu || (cpu < PD_COVERAGE_CPUS_MAX && s->cpus[cpu / 8] & 1 << cpu % 8);
}
