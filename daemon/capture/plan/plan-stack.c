/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan.h"

#include "capture/event/event-attr.h"

/*
 * What the samples of a plan hold of user stacks: in the rings, where copies may be shortened until
 * they fit, and in the recording.
 */

enum { UNWIND_BYTES_MIN = 4096 };

PdAttr plan_stored_attr(const PlanEvent *event) {
    return event->is_unwound ? event_attr_unwound(&event->attr) : event->attr;
}

uint64_t plan_stack_bytes(const Plan *plan) {
    uint64_t most = 0;

    for (size_t i = 0; i < plan->n; i++)
        most = MAX(most, (uint64_t)plan->events[i].attr.sample_stack_user);
    return most;
}

bool plan_halve_stacks(Plan *plan) {
    bool halved = false;

    for (size_t i = 0; i < plan->n; i++) {
        PlanEvent *event = &plan->events[i];

        if (!event->is_unwound || event->attr.sample_stack_user < 2 * UNWIND_BYTES_MIN)
            continue;
        event->attr.sample_stack_user = ALIGN8(event->attr.sample_stack_user / 2);
        halved = true;
    }
    return halved;
}

bool plan_unwinds(const Plan *plan) {
    for (size_t i = 0; i < plan->n; i++)
        if (plan->events[i].is_unwound)
            return true;
    return false;
}

bool plan_takes_stacks(const Plan *plan) {
    for (size_t i = 0; i < plan->n; i++)
        if (plan_stored_attr(&plan->events[i]).sample_type & PD_SAMPLE_STACK_USER)
            return true;
    return false;
}
