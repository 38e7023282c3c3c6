/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which samples of a recording are wanted, by what they are of. */

#include "perfdata/feature/coverage.h"
#include "util/bytes.h"

/* Empty: all. What is asked for by several holds when all of them do. */
typedef struct Selection {
    const uint32_t *pids;
    size_t n_pids;
    const uint32_t *tids;
    size_t n_tids;
    const char *const *comms; /* of the thread, at the time of the sample */
    size_t n_comms;
    const char *const *cgroups; /* paths, as cgroup_path_matches() takes them */
    size_t n_cgroups;
    const char *const *units; /* names, as cgroup_unit_matches() takes them; or else a cgroup */
    size_t n_units;
    bool by_cpu;
    uint8_t cpus[PD_COVERAGE_CPUS_MAX / 8];
} Selection;

/* The kinds of filter; a set. */
typedef enum SelectionKind {
    SELECTION_PID = 1 << 0,
    SELECTION_TID = 1 << 1,
    SELECTION_COMM = 1 << 2,
    SELECTION_GROUP = 1 << 3,
    SELECTION_CPU = 1 << 4,
} SelectionKind;

/* Which kinds of filter are given. */
unsigned selection_kinds(const Selection *selection);
/* Each is true where nothing of its kind is given, too. */
bool selection_has_pid(const Selection *selection, uint32_t pid);
bool selection_has_tid(const Selection *selection, uint32_t tid);
bool selection_has_comm(const Selection *selection, Bytes comm);
bool selection_has_group(const Selection *selection, Bytes path);
bool selection_has_cpu(const Selection *selection, uint32_t cpu);
