/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The events of a plan, and how one of them is opened on trial. */

#include "capture/plan/plan-stack.h"
#include "keeper/request/keeper-client.h"

/* Events are opened for this process, control group or CPU. */
typedef struct PlanTarget {
    int32_t pid;        /* -1: whatever runs on a CPU */
    const char *cgroup; /* NULL: any */
} PlanTarget;

static const PlanTarget plan_any = {.pid = -1};

void plan_done(Plan *plan);
void plan_event_done(PlanEvent *event);
/* A request to open an event without a ring; its attr is not set. */
KeeperEvent plan_event_on(PlanTarget target, unsigned cpu);
int plan_encode(const PdAttr *attr, KeeperEvent *ret);
/* One event, opened without a ring and closed again: 0 when it can be. */
int plan_try(Keeper *keeper, const PdAttr *attr, PlanTarget target, unsigned cpu);
