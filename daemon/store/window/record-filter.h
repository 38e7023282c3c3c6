/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which samples a snapshot wants. */

#include "process/history/history.h"
#include "process/mismatch.h"
#include "store/window/snapshot-request.h"

typedef struct RecordFilter {
    const SnapshotFilter *selection; /* borrowed */
    uint64_t *cgroups;               /* ids whose path is wanted */
    size_t n_cgroups;
    bool any;          /* a sample was wanted */
    Mismatch mismatch; /* what there is instead, until then */
} RecordFilter;

void record_filter_done(RecordFilter *filter);
/* What an id means from now on. */
int record_filter_add_cgroup(RecordFilter *filter, const PdCgroup *cgroup);
/* It wants some processes or threads only. */
bool record_filter_has_processes(const RecordFilter *filter);
bool record_filter_accepts_cpu(const RecordFilter *filter, const PdStamp *stamp);
bool record_filter_accepts(RecordFilter *filter, const History *history, const PdStamp *stamp,
                           uint64_t cgroup);
