/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan that is being made, and the trial of its events. */

#include <stdatomic.h>

#include "capture/event/event-attr.h"
#include "capture/event/event-list.h"
#include "capture/plan/plan-event.h"
#include "capture/plan/plan-note.h"
#include "config/config.h"

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

enum { PLAN_ERROR_MAX = 1024 };

typedef struct Planning {
    const PlanOptions *options;
    EventPolicy policy;
    EventHost host;
    EventList *list; /* of the same events as the plan, in the same order */
    Plan *plan;
    PlanNotes *notes;
} Planning;

/* Leaves what this machine opens; an event or a group that it does not open is left out and noted.
 */
int plan_settle_items(Planning *planning);
