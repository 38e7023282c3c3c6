/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/event-table.h"

#include <string.h>

/* The tables of events by which recordings know the event of a sample and of side-band. */

/* The side-band event has one read_format bit more, which changes no record; the table omits it. */
static int event_table_add_side_band(PdEvents *events, const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;
    PdEvent *event;
    int r;

    attr.read_format &= ~(uint64_t)PD_FORMAT_TOTAL_TIME_ENABLED;
    r = pd_events_add(events, &attr, (Bytes){}, NULL, 0, &event);
    for (size_t i = 0; r == 0 && i < sampler->side_band.n; i++)
        r = pd_events_add_ids(events, event, &sampler->side_band.rings[i]->counters[0].id, 1);
    if (r < 0)
        return r;
    return pd_events_set_name(events, event, (Bytes){.data = (const uint8_t *)"dummy", .size = 5});
}

static int event_table_add_ids(const RingSet *set, size_t index, PdEvents *events, PdEvent *event) {
    int r = 0;

    for (size_t i = 0; i < set->n; i++) {
        const CpuRing *ring = set->rings[i];

        for (size_t k = 0; r == 0 && k < ring->n_counters; k++)
            if (ring->counters[k].event == index &&
                &ring->counters[k] == set->ops->reporter(ring, &ring->counters[k]))
                r = pd_events_add_ids(events, event, &ring->counters[k].id, 1);
    }
    return r;
}

int event_table_of_sampler(Sampler *sampler) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = pd_events_new(&events);

    if (r == 0)
        r = event_table_add_side_band(events, sampler);
    if (r < 0)
        return r;
    pd_events_free(sampler->side_band_events);
    sampler->side_band_events = TAKE_PTR(events);
    return 0;
}

/* Makes the table for records as they are stored, or as they are in the rings. */
static int event_table_make(const SamplerSession *session, bool stored, PdEvents **ret) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    int r = pd_events_new(&events);

    for (size_t e = 0; r == 0 && e < session->plan.n; e++) {
        const PlanEvent *planned = &session->plan.events[e];
        PdAttr attr = stored ? plan_stored_attr(planned) : planned->attr;
        PdEvent *event;

        r = pd_events_add(events, &attr, (Bytes){}, NULL, 0, &event);
        if (r == 0 && planned->leader != PLAN_NO_LEADER)
            event->leader = (uint32_t)planned->leader;
        if (r == 0)
            r = event_table_add_ids(&session->rings, e, events, event);
        if (r == 0)
            r = pd_events_set_name(
                events, event,
                (Bytes){.data = (const uint8_t *)planned->name, .size = strlen(planned->name)});
    }
    if (r == 0)
        r = event_table_add_side_band(events, session->sampler);
    if (r == 0)
        *ret = TAKE_PTR(events);
    return r;
}

int event_table_of_session(SamplerSession *session) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL, *taken = NULL;
    int r = event_table_make(session, true, &events);

    if (r == 0 && plan_unwinds(&session->plan))
        r = event_table_make(session, false, &taken);
    if (r < 0)
        return r;
    pd_events_free(session->events);
    pd_events_free(session->taken);
    session->events = TAKE_PTR(events);
    session->taken = TAKE_PTR(taken);
    return 0;
}
