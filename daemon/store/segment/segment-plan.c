/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/segment/segment-plan.h"

#include <errno.h>

#include "util/clock.h"

/*
 * A plan goes from the main thread to the writer and may wait in the queue for long, so it owns
 * everything: events are copied with their ids and names.
 */

int segment_plan_new(SegmentHead *head, SegmentPlan **ret) {
    _cleanup_(segment_plan_freep) SegmentPlan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan)
        return -ENOMEM;
    r = pd_events_new(&plan->events);
    for (size_t i = 0; r == 0 && i < pd_events_count(head->events); i++)
        r = pd_events_copy(plan->events, pd_events_at(head->events, i));
    if (r == 0)
        r = buffer_error(&head->preamble);
    buffer_append(&plan->tracing, head->tracing.data, head->tracing.size);
    if (r == 0)
        r = buffer_error(&plan->tracing);
    if (r < 0)
        return r;
    if (head->coverage)
        r = pd_coverage_copy(head->coverage, &plan->coverage);
    if (r < 0)
        return r;
    plan->clock = head->clock;
    plan->continues = head->continues;
    plan->preamble = head->preamble;
    head->preamble = (Buffer){};
    *ret = TAKE_PTR(plan);
    return 0;
}

SegmentPlan *segment_plan_free(SegmentPlan *plan) {
    if (!plan)
        return NULL;
    pd_events_free(plan->events);
    pd_coverage_done(&plan->coverage);
    buffer_done(&plan->tracing);
    buffer_done(&plan->preamble);
    free(plan);
    return NULL;
}

size_t segment_plan_bytes(const SegmentPlan *plan) {
    return sizeof(*plan) + plan->tracing.allocated + plan->preamble.allocated;
}

static bool segment_plan_counts_nothing(const PdAttr *attr) {
    /* PERF_COUNT_SW_DUMMY, which exists only for side-band. */
    return attr->type == PD_TYPE_SOFTWARE && attr->config == 9;
}

uint64_t segment_sample_weight(const PdEvents *events) {
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdAttr *attr = &pd_events_at(events, i)->attr;

        if (segment_plan_counts_nothing(attr))
            continue;
        if (!(attr->flags & PD_ATTR_FREQ))
            return attr->sample_period;
        return attr->sample_period ? NS_PER_SECOND / attr->sample_period : 0;
    }
    return 0;
}
