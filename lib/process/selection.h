/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Selects samples of a recording by process, name, group or CPU. */

#include "perfdata/feature/coverage.h"
#include "util/bytes.h"

/* An empty list selects everything. When several lists are set, a sample must match all of them. */
typedef struct Selection {
    const uint32_t *pids;
    size_t n_pids;
    const uint32_t *tids;
    size_t n_tids;
    const char *const *comms; /* names of the sample's thread at that time */
    size_t n_comms;
    const char *const *cgroups; /* paths, as for cgroup_path_matches() */
    size_t n_cgroups;
    const char *const *units; /* unit names, as for cgroup_unit_matches(); a sample matches a
                               * unit or a cgroup */
    size_t n_units;
    bool by_cpu;
    uint8_t cpus[PD_COVERAGE_CPUS_MAX / 8];
} Selection;

/* The kinds of filter, as a bit set. */
typedef enum SelectionKind {
    SELECTION_PID = 1 << 0,
    SELECTION_TID = 1 << 1,
    SELECTION_COMM = 1 << 2,
    SELECTION_GROUP = 1 << 3,
    SELECTION_CPU = 1 << 4,
} SelectionKind;

/* The kinds of filter that are set. */
unsigned selection_kinds(const Selection *selection);
/* Each function also returns true if no filter of its kind is set. */
bool selection_has_pid(const Selection *selection, uint32_t pid);
bool selection_has_tid(const Selection *selection, uint32_t tid);
bool selection_has_comm(const Selection *selection, Bytes comm);
bool selection_has_group(const Selection *selection, Bytes path);
bool selection_has_cpu(const Selection *selection, uint32_t cpu);
