/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/plan-stack.h"

#include <inttypes.h>
#include <linux/perf_event.h>

#include "capture/event/event-attr.h"
#include "capture/plan/degraded-reason.h"
#include "util/text.h"

/*
 * What the samples of a plan hold of user stacks: in the rings, where copies may be shortened until
 * they fit, and in the recording. CallGraph=auto begins with events that are unwound. What speaks
 * against that turns them into events with frame pointers: the attr of a sample as it is stored is
 * the same.
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

/* The same of the samples that are unwound. */
static uint64_t plan_unwound_bytes(const Plan *plan) {
    uint64_t most = 0;

    for (size_t i = 0; i < plan->n; i++)
        if (plan->events[i].is_unwound)
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

/* An event that takes no samples of its own has the rate of its leader. */
static bool plan_stack_has_rate(const Plan *plan, const PlanEvent *event) {
    bool takes_samples = event->attr.sample_period > 0 || event->leader == PLAN_NO_LEADER;
    const PlanEvent *sampled = takes_samples ? event : &plan->events[event->leader];

    return sampled->attr.flags & PD_ATTR_FREQ;
}

static void plan_stack_drop(PlanEvent *event) {
    event->attr = plan_stored_attr(event);
    event->is_unwound = false;
}

void plan_use_frame_pointers(Plan *plan, CallGraphReason reason) {
    for (size_t i = 0; i < plan->n; i++)
        if (plan->events[i].may_unwind)
            plan_stack_drop(&plan->events[i]);
    plan->call_graph_reason = reason;
}

bool plan_may_choose(const Plan *plan) {
    for (size_t i = 0; i < plan->n; i++)
        if (plan->events[i].may_unwind && plan->events[i].is_unwound)
            return true;
    return false;
}

static CallGraphReason plan_stack_choose(Plan *plan) {
    bool could = !event_attr_has_registers(), did = plan_unwinds(plan);

    for (size_t i = 0; i < plan->n; i++) {
        PlanEvent *event = &plan->events[i];

        could |= event->may_unwind;
        if (event->is_unwound && !plan_stack_has_rate(plan, event))
            plan_stack_drop(event);
    }
    if (plan_unwinds(plan))
        return CALL_GRAPH_CAN_UNWIND;
    return did ? CALL_GRAPH_UNKNOWN_RATE : could ? CALL_GRAPH_NO_COPIES : CALL_GRAPH_NO_PROGRAMS;
}

void plan_settle_call_graph(Plan *plan, CallGraph configured) {
    if (configured == CALL_GRAPH_AUTO)
        plan->call_graph_reason = plan_stack_choose(plan);
    else if (plan->degraded & DEGRADED_FALLBACK_CALL_GRAPH)
        plan->call_graph_reason = CALL_GRAPH_REFUSED;
    plan->asked_bytes = plan_unwound_bytes(plan);
}

void plan_adopt_attr(PlanEvent *event, const PdAttr *attr) {
    event->attr = *attr;
    if (event->may_unwind)
        event->is_unwound = attr->sample_type & PD_SAMPLE_STACK_USER;
}

CallGraph plan_call_graph(const Plan *plan) {
    uint64_t types = 0, branches = 0;

    for (size_t i = 0; i < plan->n; i++) {
        types |= plan->events[i].attr.sample_type;
        branches |= plan->events[i].attr.branch_sample_type;
    }
    if (types & PD_SAMPLE_STACK_USER)
        return plan_unwinds(plan) ? CALL_GRAPH_UNWIND : CALL_GRAPH_DWARF;
    if (branches & PERF_SAMPLE_BRANCH_CALL_STACK)
        return CALL_GRAPH_LBR;
    return types & PD_SAMPLE_CALLCHAIN ? CALL_GRAPH_FP : CALL_GRAPH_NONE;
}

void plan_put_call_graph(const Plan *plan, Buffer *out) {
    /* clang-format off */
    static const char *const names[] = {
        [CALL_GRAPH_NONE]   = "none",
        [CALL_GRAPH_FP]     = "fp",
        [CALL_GRAPH_DWARF]  = "dwarf",
        [CALL_GRAPH_LBR]    = "lbr",
        [CALL_GRAPH_UNWIND] = "unwind",
    };
    /* clang-format on */
    CallGraph kind = plan_call_graph(plan);

    text_puts(out, names[kind]);
    if (kind == CALL_GRAPH_UNWIND)
        text_printf(out, ":%" PRIu64, plan_unwound_bytes(plan));
    else if (kind == CALL_GRAPH_DWARF)
        text_printf(out, ":%" PRIu64, plan_stack_bytes(plan));
}

/* Less than was asked for, in a clause. */
static void plan_stack_put_shortened(uint64_t stack_bytes, Buffer *out) {
    bool is_round = stack_bytes % 1024 == 0;

    text_printf(out,
                ", with %" PRIu64 "%s of each, since a ring would hold less than two seconds "
                "of larger ones",
                is_round ? stack_bytes >> 10 : stack_bytes, is_round ? "K" : " bytes");
}

void plan_put_call_graph_reason(const Plan *plan, Buffer *out) {
    /* clang-format off */
    static const char *const sentences[] = {
        [CALL_GRAPH_AS_CONFIGURED] = "CallGraph= asks for it",
        [CALL_GRAPH_REFUSED]       = "This machine cannot take the call graphs that CallGraph= asks for",
        [CALL_GRAPH_CAN_UNWIND]    = "This host can unwind stacks while it records",
        [CALL_GRAPH_NO_COPIES]     = "The kernel copies no user stacks here, and without them nothing can be unwound",
        [CALL_GRAPH_NO_PROGRAMS]   = "None of its events takes stacks of programs by CallGraph=",
        [CALL_GRAPH_UNKNOWN_RATE]  = "Its events have no frequency, so their samples may be too many to copy stacks; CallGraph=unwind does",
        [CALL_GRAPH_HIGH_RATE]     = "Its rate on all CPUs together is more than 100,000 samples a second",
        [CALL_GRAPH_SMALL_RINGS]   = "Its rings would hold less than two seconds of stacks; raise MaxBufferTotal= or LimitMEMLOCK=, or lower Frequency=",
        [CALL_GRAPH_NO_TABLES]     = "profd-elf does not run, and without it stacks cannot be unwound; install profd again and restart it",
    };
    /* clang-format on */
    CallGraphReason reason = plan->call_graph_reason;
    bool is_chosen = reason > CALL_GRAPH_REFUSED;
    uint64_t stack_bytes = plan_unwound_bytes(plan);

    if (is_chosen && plan_unwinds(plan) != (reason == CALL_GRAPH_CAN_UNWIND)) {
        text_puts(out, "The recorder before this one chose it, and its events go on");
        return;
    }
    text_puts(out, sentences[reason]);
    if (stack_bytes > 0 && stack_bytes < plan->asked_bytes)
        plan_stack_put_shortened(stack_bytes, out);
}
