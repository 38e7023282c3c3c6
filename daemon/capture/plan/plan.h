/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session counts, settled: which events, with which attrs, the same on every CPU.
 */

#include <stdatomic.h>

#include "capture/plan/plan-note.h"
#include "capture/plan/plan-stack.h"
#include "config/config.h"
#include "keeper/request/keeper-client.h"

/* What events are opened for. */
typedef struct PlanTarget {
    int32_t pid;        /* -1: whatever runs on a CPU */
    const char *cgroup; /* NULL: any */
} PlanTarget;

typedef struct PlanOptions {
    Keeper *keeper;
    const SessionConfig *config;
    PlanTarget target;              /* on which they are tried */
    uint64_t max_hz;                /* 0: no limit */
    const CpuList *online;          /* where it may be tried, in this order */
    bool no_lost, no_cgroup;        /* what the kernel cannot tell */
    bool no_tables;                 /* nobody makes the tables by which stacks are unwound */
    const atomic_bool *is_unwanted; /* true: the plan may be left; NULL: it is wanted */
    uint64_t until_ns;              /* CLOCK_MONOTONIC; behind it -ETIME; 0: no limit */
    const char *events;             /* instead of those of the configuration; NULL: those */
} PlanOptions;

/* The target is processes or threads. */
static inline bool plan_has_threads(const SessionConfig *config) {
    return config->n_pids > 0 || config->n_tids > 0;
}

static const PlanTarget plan_any = {.pid = -1};

void plan_done(Plan *plan);
/*
 * Tries what this machine has. An event or group that cannot be opened is left out and noted, the
 * caller logs it; without any event left the error of the first one is returned. What concerns the
 * whole session (its target, descriptors, memory) is logged with its remedy, returned and not
 * noted. Notes are added to `notes` in any case.
 */
int plan_make(const PlanOptions *options, PlanNotes *notes, Plan *ret);
/* One event, opened without a ring and closed again: 0 when it can be. */
int plan_try(Keeper *keeper, const PdAttr *attr, PlanTarget target, unsigned cpu);
int plan_encode(const PdAttr *attr, KeeperEvent *ret);
/* Names what is the same between recorders: the session, and all of its configuration that says
 * what is counted. */
uint64_t plan_identity(const SessionConfig *config);
