/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/plan/ring-plan.h"

#include "capture/plan/limit.h"

/*
 * Samples with copies of stacks are some seventy times as large as others, so their rings grow
 * beyond BufferSize=. The memory for rings is for all sessions, and nobody knows how many come: a
 * session with stacks leaves room for eight ordinary ones, or half of what is left where that is
 * less. Whatever the others take, each finds half of the rest.
 *
 * A session that samples fast gets larger rings as well, so that time starts its sweeps and not a
 * ring that fills: each sweep costs some wake-ups. A BufferSize= below the default is not exceeded,
 * and neither is any where the rate is not known.
 */

enum {
    SAMPLE_BYTES = 250, /* with some twenty frames */
    HZ_OF_STACKS = 99,  /* what is planned for where the rate is not known */
    HZ_OF_OTHERS = 1000,
    WANTED_SEC = 3,
    SPAN_MIN_MS = 2000,
    FAST_SEC = 8, /* three eighths of it, which start a sweep, are as long as between two sweeps */
    FAST_BYTES_MAX = 2 << 20,
    ORDINARY_BYTES = 512 << 10, /* the default of BufferSize= */
    OTHERS = 8,
    UNWOUND_PER_SEC_MAX = 100000, /* a sample takes the recorder some microseconds */
};

static bool ring_plan_is_on(const PlanEvent *event, unsigned cpu) {
    return event->attr.flags & PD_ATTR_FREQ &&
           (event->cpus.n == 0 || cpu_list_has(&event->cpus, cpu));
}

static uint64_t ring_plan_rate_on(const Plan *plan, unsigned cpu) {
    uint64_t rate = 0;

    for (size_t i = 0; i < plan->n; i++) {
        const PlanEvent *event = &plan->events[i];

        if (ring_plan_is_on(event, cpu))
            rate += event->attr.sample_period * (event->attr.sample_stack_user + SAMPLE_BYTES);
    }
    return rate;
}

/* Returns how much the busiest CPU writes in a second; 0: it is not known. */
static uint64_t ring_plan_rate(const Plan *plan, const CpuList *cpus) {
    uint64_t most = 0;

    for (size_t i = 0; i < cpus->n; i++)
        most = MAX(most, ring_plan_rate_on(plan, cpus->cpus[i]));
    return most;
}

static uint64_t ring_plan_likely_rate(const Plan *plan) {
    uint64_t stack_bytes = plan_stack_bytes(plan);

    return (stack_bytes + SAMPLE_BYTES) * (stack_bytes > 0 ? HZ_OF_STACKS : HZ_OF_OTHERS);
}

static uint64_t ring_plan_wanted(uint64_t buffer_bytes, uint64_t known_rate) {
    uint64_t fast = MIN(limit_ring_bytes_for(FAST_SEC * known_rate), (uint64_t)FAST_BYTES_MAX);

    return buffer_bytes < ORDINARY_BYTES ? buffer_bytes : MAX(buffer_bytes, fast);
}

/* What of the memory that is left a session may take. */
static uint64_t ring_plan_share(const RingRoom *room, bool is_large) {
    uint64_t ordinary = room->buffer_bytes * room->cpus->n, left = room->left_bytes;
    uint64_t others = OTHERS * ordinary, beside = left > others ? left - others : 0;
    uint64_t share = MAX(left / 2, beside);

    ordinary = MIN(left, ordinary);
    return is_large ? MAX(share, ordinary) : left;
}

static RingPlan ring_plan_now(const Plan *plan, const RingRoom *room) {
    bool has_stacks = plan_stack_bytes(plan) > 0;
    uint64_t known_rate = ring_plan_rate(plan, room->cpus);
    uint64_t rate = known_rate ?: ring_plan_likely_rate(plan);
    uint64_t wanted = has_stacks ? MAX(room->buffer_bytes, limit_ring_bytes_for(WANTED_SEC * rate))
                                 : ring_plan_wanted(room->buffer_bytes, known_rate);
    uint64_t share = ring_plan_share(room, has_stacks || wanted > room->buffer_bytes);
    RingPlan rings = {.bytes_per_sec = rate, .wanted_bytes = wanted};

    rings.bytes = limit_ring_bytes(wanted, room->cpus->n, share);
    rings.span_ms = limit_ring_span_ms(rings.bytes, rate);
    rings.is_small =
        rings.bytes * 2 <= room->buffer_bytes || (has_stacks && rings.span_ms < SPAN_MIN_MS);
    return rings;
}

/* How many samples all CPUs take in a second. */
static uint64_t ring_plan_samples(const Plan *plan, const CpuList *cpus) {
    uint64_t samples = 0;

    for (size_t i = 0; i < cpus->n; i++)
        for (size_t e = 0; e < plan->n; e++)
            if (ring_plan_is_on(&plan->events[e], cpus->cpus[i]))
                samples += plan->events[e].attr.sample_period;
    return samples;
}

RingPlan ring_plan(Plan *plan, const RingRoom *room) {
    RingPlan rings;

    if (plan_may_choose(plan) && ring_plan_samples(plan, room->cpus) > UNWOUND_PER_SEC_MAX)
        plan_use_frame_pointers(plan, CALL_GRAPH_HIGH_RATE);
    rings = ring_plan_now(plan, room);
    while (rings.span_ms < SPAN_MIN_MS && plan_halve_stacks(plan))
        rings = ring_plan_now(plan, room);
    if (rings.span_ms >= SPAN_MIN_MS || !plan_may_choose(plan))
        return rings;
    plan_use_frame_pointers(plan, CALL_GRAPH_SMALL_RINGS);
    return ring_plan_now(plan, room);
}
