/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/window/record-filter.h"

#include <errno.h>

#include "util/array.h"

/* Checks the cheapest condition first; the name of a thread comes from its History. */

void record_filter_done(RecordFilter *filter) {
    mismatch_done(&filter->mismatch);
    free(filter->cgroups);
    *filter = (RecordFilter){};
}

static uint64_t *record_filter_find_cgroup(const RecordFilter *filter, uint64_t id) {
    for (size_t i = 0; i < filter->n_cgroups; i++)
        if (filter->cgroups[i] == id)
            return &filter->cgroups[i];
    return NULL;
}

int record_filter_add_cgroup(RecordFilter *filter, const PdCgroup *cgroup) {
    uint64_t *known = record_filter_find_cgroup(filter, cgroup->id);
    bool wanted = selection_has_group(filter->selection, cgroup->path);

    if (known && !wanted)
        *known = 0;
    if (!wanted)
        return filter->any ? 0 : mismatch_add_group(&filter->mismatch, cgroup);
    if (known)
        return 0;
    known = array_grow(&filter->cgroups, &filter->n_cgroups);
    if (!known)
        return -ENOMEM;
    *known = cgroup->id;
    return 0;
}

bool record_filter_has_processes(const RecordFilter *filter) {
    return selection_kinds(filter->selection) & ~(unsigned)SELECTION_CPU;
}

bool record_filter_accepts_cpu(const RecordFilter *filter, const PdStamp *stamp) {
    return !filter->selection->by_cpu ||
           (stamp->has_cpu && selection_has_cpu(filter->selection, stamp->cpu));
}

static bool record_filter_accepts_pid(const SnapshotFilter *selection, const PdStamp *stamp) {
    return selection->n_pids == 0 || (stamp->has_tid && selection_has_pid(selection, stamp->pid));
}

static bool record_filter_accepts_tid(const SnapshotFilter *selection, const PdStamp *stamp) {
    return selection->n_tids == 0 || (stamp->has_tid && selection_has_tid(selection, stamp->tid));
}

static Bytes record_filter_comm_of(const History *history, const PdStamp *stamp) {
    /* No COMM record names the idle task. */
    if (!stamp->has_tid || stamp->tid == 0)
        return (Bytes){.data = (const uint8_t *)"swapper", .size = 7};
    return history_comm(history, stamp->pid, stamp->tid, stamp->time);
}

static bool record_filter_accepts_cgroup(const RecordFilter *filter, uint64_t cgroup) {
    return filter->selection->n_cgroups + filter->selection->n_units == 0 ||
           (cgroup != 0 && record_filter_find_cgroup(filter, cgroup));
}

/* No sample has matched yet: a sample that does not match shows what could be selected instead. */
static bool record_filter_accepts_first(RecordFilter *filter, const History *history,
                                        const PdStamp *stamp, uint64_t cgroup) {
    const SnapshotFilter *selection = filter->selection;
    unsigned asked = selection_kinds(selection), passed;
    Bytes comm = selection->n_comms > 0 ? record_filter_comm_of(history, stamp) : (Bytes){};

    passed = (record_filter_accepts_cpu(filter, stamp) ? SELECTION_CPU : 0) |
             (record_filter_accepts_pid(selection, stamp) ? SELECTION_PID : 0) |
             (record_filter_accepts_tid(selection, stamp) ? SELECTION_TID : 0) |
             (selection_has_comm(selection, comm) ? SELECTION_COMM : 0) |
             (record_filter_accepts_cgroup(filter, cgroup) ? SELECTION_GROUP : 0);
    filter->any = (asked & ~passed) == 0;
    if (!filter->any)
        mismatch_add_sample(&filter->mismatch, selection, passed, comm, cgroup);
    return filter->any;
}

bool record_filter_accepts(RecordFilter *filter, const History *history, const PdStamp *stamp,
                           uint64_t cgroup) {
    const SnapshotFilter *selection = filter->selection;

    if (!filter->any)
        return record_filter_accepts_first(filter, history, stamp, cgroup);
    return record_filter_accepts_cpu(filter, stamp) &&
           record_filter_accepts_pid(selection, stamp) &&
           record_filter_accepts_tid(selection, stamp) &&
           record_filter_accepts_cgroup(filter, cgroup) &&
           (selection->n_comms == 0 ||
            selection_has_comm(selection, record_filter_comm_of(history, stamp)));
}
