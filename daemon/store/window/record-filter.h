/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Decides which samples a snapshot includes. */

#include "process/history/history.h"
#include "process/mismatch.h"
#include "store/window/snapshot-request.h"

typedef struct RecordFilter {
    const SnapshotFilter *selection; /* borrowed */
    uint64_t *cgroups;               /* ids whose path matches */
    size_t n_cgroups;
    bool any;          /* some sample matched */
    Mismatch mismatch; /* collects near matches until then */
} RecordFilter;

void record_filter_done(RecordFilter *filter);
/* Notes the path that a cgroup id has from now on. */
int record_filter_add_cgroup(RecordFilter *filter, const PdCgroup *cgroup);
/* Whether it selects processes or threads. */
bool record_filter_has_processes(const RecordFilter *filter);
bool record_filter_accepts_cpu(const RecordFilter *filter, const PdStamp *stamp);
bool record_filter_accepts(RecordFilter *filter, const History *history, const PdStamp *stamp,
                           uint64_t cgroup);
