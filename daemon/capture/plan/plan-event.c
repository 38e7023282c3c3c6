/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan-event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The events of a plan, and how one of them is opened on trial. */

void plan_event_done(PlanEvent *event) {
    free(event->name);
    cpu_list_done(&event->cpus);
}

void plan_done(Plan *plan) {
    for (size_t i = 0; i < plan->n; i++)
        plan_event_done(&plan->events[i]);
    free(plan->events);
    free(plan->description);
    buffer_done(&plan->tracing);
    *plan = (Plan){};
}

int plan_encode(const PdAttr *attr, KeeperEvent *ret) {
    _cleanup_(buffer_done) Buffer bytes = {};

    pd_attr_encode(attr, pd_attr_size_needed(attr), &bytes, false);
    if (buffer_error(&bytes) < 0)
        return buffer_error(&bytes);
    if (bytes.size > sizeof(ret->attr))
        return -E2BIG;
    memset(ret->attr, 0, sizeof(ret->attr));
    memcpy(ret->attr, bytes.data, bytes.size);
    ret->attr_size = (uint32_t)bytes.size;
    return 0;
}

KeeperEvent plan_event_on(PlanTarget target, unsigned cpu) {
    return (KeeperEvent){.pid = target.pid,
                         .cpu = (int32_t)cpu,
                         .cgroup = target.cgroup,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT};
}

int plan_try(Keeper *keeper, const PdAttr *attr, PlanTarget target, unsigned cpu) {
    KeeperEvent event = plan_event_on(target, cpu);
    uint32_t slot;
    int fd = -1, r = plan_encode(attr, &event);

    if (r == 0)
        r = keeper_open_event(keeper, &event, &slot, &fd);
    /* The last one to close a tracepoint waits for all CPUs: that is to be the keeper. */
    closep(&fd);
    return r < 0 ? r : keeper_close_event(keeper, slot);
}
