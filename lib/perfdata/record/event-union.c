/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/event-union.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Two equal events of one recording stay separate. The kernel counts ids up from each boot, so
 * recordings of one boot share an id only if they share the event (perf record --switch-output). If
 * two events have the same id anyway, the later one gets a new id.
 *
 * A reader finds the event of a record by the id in it. That works if there is one event, if all
 * have the id at the same position, or if all have an IDENTIFIER; otherwise every record gets an
 * IDENTIFIER.
 */

enum { EVENTS_MAX = 8192 }; /* a bound, because each is compared with each */

typedef struct Plan {
    PdEventSource *sources;
    size_t n;
    PdEvents *events; /* of the result */
    bool add_identifier;
    uint64_t fresh;         /* the next unused id */
    bool taken[EVENTS_MAX]; /* events of the result that this recording's events have become */
} Plan;

void pd_event_source_done(PdEventSource *source) {
    free(source->index);
    source->index = NULL;
    source->rewriter = pd_rewriter_free(source->rewriter);
}

static bool event_union_same_bytes(const PdEvent *a, const PdEvent *b, const PdAttr *attr) {
    enum { SAMPLE_TYPE_AT = 24 };

    /* `attr` was extended already, `b` has it in its bytes too. */
    return a->attr.size == b->attr.size && attr->sample_type == b->attr.sample_type &&
           a->raw_size == b->raw_size && a->raw_size >= SAMPLE_TYPE_AT + 8 &&
           memcmp(a->raw, b->raw, SAMPLE_TYPE_AT) == 0 &&
           memcmp(a->raw + SAMPLE_TYPE_AT + 8, b->raw + SAMPLE_TYPE_AT + 8,
                  a->raw_size - SAMPLE_TYPE_AT - 8) == 0 &&
           strcmp(a->name, b->name) == 0;
}

/* The event of the result that this event becomes: the first equal one that no earlier event of the
 * same recording has become; NULL: none. */
static PdEvent *event_union_find_same(const Plan *plan, const PdEvent *event, const PdAttr *attr) {
    for (size_t i = 0; i < pd_events_count(plan->events); i++) {
        PdEvent *other = pd_events_at(plan->events, i);

        if (!plan->taken[i] && event_union_same_bytes(event, other, attr))
            return other;
    }
    return NULL;
}

static int event_union_add_event(Plan *plan, const PdEventSource *source, const PdEvent *event,
                                 PdEvent **ret) {
    _cleanup_free_ uint8_t *raw = malloc(event->raw_size + 1);
    PdAttr attr = event->attr;
    PdEvent *made;
    int r;

    if (!raw)
        return -ENOMEM;
    if (event->raw_size > 0)
        memcpy(raw, event->raw, event->raw_size);
    if (plan->add_identifier)
        pd_attr_add_identifier(&attr, raw, event->raw_size, source->swap);
    made = event_union_find_same(plan, event, &attr);
    if (made) {
        *ret = made;
        return 0;
    }
    if (pd_events_count(plan->events) >= EVENTS_MAX)
        return -E2BIG;
    r = pd_events_add(plan->events, &attr, (Bytes){.data = raw, .size = event->raw_size}, NULL, 0,
                      &made);
    if (r == 0 && event->name_given)
        r = pd_events_set_name(
            plan->events, made,
            (Bytes){.data = (const uint8_t *)event->name, .size = strlen(event->name)});
    if (r == 0)
        *ret = made;
    return r;
}

static bool event_union_id_is_known(const Plan *plan, uint64_t id) {
    if (id == 0 || pd_events_by_id(plan->events, id))
        return true;
    for (size_t i = 0; i < plan->n; i++)
        if (pd_events_by_id(plan->sources[i].events, id))
            return true;
    return false;
}

static uint64_t event_union_fresh_id(Plan *plan) {
    while (event_union_id_is_known(plan, plan->fresh))
        plan->fresh++;
    return plan->fresh++;
}

/* If records of the event have an id, adds it to the event `to` of the result. */
static int event_union_add_id(Plan *plan, PdEventSource *source, PdEvent *to, uint64_t id) {
    PdEvent *holder = pd_events_by_id(plan->events, id);
    uint64_t as = id;

    if (holder == to || id == 0)
        return 0;
    if (holder) {
        int r;

        as = event_union_fresh_id(plan);
        source->changes = true;
        r = pd_rewriter_map_id(source->rewriter, id, as);
        if (r < 0)
            return r;
    }
    return pd_events_add_ids(plan->events, to, &as, 1);
}

static int event_union_add_ids(Plan *plan, PdEventSource *source, const PdEvent *event,
                               PdEvent *to) {
    int r = 0;

    for (size_t i = 0; r == 0 && i < event->n_ids; i++)
        r = event_union_add_id(plan, source, to, event->ids[i]);
    return r;
}

static int event_union_plan_source(Plan *plan, PdEventSource *source) {
    size_t n = pd_events_count(source->events);
    int r;

    pd_event_source_done(source);
    source->changes = plan->add_identifier;
    source->index = calloc(n + 1, sizeof(*source->index));
    if (!source->index)
        return -ENOMEM;
    memset(plan->taken, 0, sizeof(plan->taken));
    r = pd_rewriter_new(source->events, &source->rewriter);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const PdEvent *event = pd_events_at(source->events, i);
        PdEvent *to = NULL;

        r = event_union_add_event(plan, source, event, &to);
        if (r == 0)
            r = event_union_add_ids(plan, source, event, to);
        if (r < 0)
            break;
        source->index[i] = to->index;
        plan->taken[to->index] = true;
    }
    if (r == 0 && plan->add_identifier)
        pd_rewriter_add_identifier(source->rewriter);
    return r;
}

/* True if all have IDENTIFIER, or all have the same fields, including ID. */
static bool event_union_ids_have_one_place(const PdEvents *events) {
    bool all_identify = true, all_alike = true;
    uint64_t first = pd_events_count(events) > 0 ? pd_events_at(events, 0)->attr.sample_type : 0;

    for (size_t i = 0; i < pd_events_count(events); i++) {
        uint64_t type = pd_events_at(events, i)->attr.sample_type;

        all_identify &= !!(type & PD_SAMPLE_IDENTIFIER);
        all_alike &= type == first && type & PD_SAMPLE_ID;
    }
    return all_identify || all_alike || pd_events_count(events) == 1;
}

/* The id to add to records without an id; a new id if the event has none. */
static int event_union_default_id_of(Plan *plan, const PdEventSource *source, const PdEvent *event,
                                     uint64_t *ret) {
    PdEvent *to = pd_events_at(plan->events, source->index[event->index]);
    uint64_t id;
    int r;

    if (event->n_ids > 0) {
        *ret = pd_rewriter_id(source->rewriter, event->ids[0]);
        return 0;
    }
    id = event_union_fresh_id(plan);
    r = pd_events_add_ids(plan->events, to, &id, 1);
    if (r == 0)
        *ret = id;
    return r;
}

/* Records that a tool made have an id of 0, which means the first event; if the result has several
 * events, they get the id of their event. */
static int event_union_set_default_ids(Plan *plan) {
    for (size_t i = 0; i < plan->n; i++) {
        PdEventSource *source = &plan->sources[i];

        for (size_t k = 0; k < pd_events_count(source->events); k++) {
            const PdEvent *event = pd_events_at(source->events, k);
            uint64_t id;
            int r;

            source->changes |= event->n_ids == 0;
            r = event_union_default_id_of(plan, source, event, &id);
            if (r == 0)
                r = pd_rewriter_set_default_id(source->rewriter, event, id);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int event_union_plan_all(Plan *plan) {
    int r;

    plan->fresh = 0;
    plan->events = pd_events_free(plan->events);
    r = pd_events_new(&plan->events);
    for (size_t i = 0; r == 0 && i < plan->n; i++)
        r = event_union_plan_source(plan, &plan->sources[i]);
    if (r == 0 && pd_events_count(plan->events) > 1)
        r = event_union_set_default_ids(plan);
    return r;
}

int pd_events_unite(PdEventSource *sources, size_t n, PdEvents **ret) {
    _cleanup_free_ Plan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan)
        return -ENOMEM;
    *plan = (Plan){.sources = sources, .n = n};
    r = event_union_plan_all(plan);
    if (r == 0 && !event_union_ids_have_one_place(plan->events)) {
        plan->add_identifier = true;
        r = event_union_plan_all(plan);
    }
    if (r < 0) {
        pd_events_free(plan->events);
        return r;
    }
    *ret = plan->events;
    return 0;
}
