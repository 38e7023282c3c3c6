/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/event-feature.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Both go by way of an environment, which knows the formats. EVENT_DESC borrows what the events
 * own, so that environment is never freed.
 */

int event_desc_encode(const PdEvents *events, bool swap, Buffer *out) {
    _cleanup_free_ PdEventDesc *descs = NULL;
    PdEnvironment env = {};
    size_t n = pd_events_count(events);

    descs = calloc(n + 1, sizeof(*descs));
    if (!descs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const PdEvent *event = pd_events_at(events, i);

        descs[i] = (PdEventDesc){
            .attr = event->attr,
            .raw = event->raw,
            .raw_size = event->raw_size,
            .raw_swapped = swap,
            .name = event->name,
            .ids = event->ids,
            .n_ids = event->n_ids,
        };
    }
    env.event_descs = descs;
    env.n_event_descs = n;
    env.has[PD_FEATURE_EVENT_DESC] = true;
    return pd_environment_write(&env, PD_FEATURE_EVENT_DESC, out, swap);
}

/* False when the group cannot be told any more. */
static bool remake_group(PdGroup *group, const uint32_t *new_index, size_t end) {
    uint32_t leader = UINT32_MAX, n = 0;

    for (size_t i = group->leader; i < end; i++) {
        if (new_index[i] == UINT32_MAX)
            continue;
        if (n > 0 && new_index[i] != leader + n)
            return false;
        leader = n > 0 ? leader : new_index[i];
        n++;
    }
    group->leader = leader;
    group->n_members = n;
    return n > 1;
}

static bool has_group(const PdEnvironment *env, const PdGroup *group) {
    for (size_t i = 0; i < env->n_groups; i++)
        if (env->groups[i].leader == group->leader)
            return true;
    return false;
}

static int by_leader(const void *a, const void *b) {
    const PdGroup *x = a, *y = b;

    return x->leader < y->leader ? -1 : x->leader > y->leader;
}

int group_desc_add(PdEnvironment *env, Bytes body, bool swap, const uint32_t *new_index, size_t n) {
    _cleanup_(pd_environment_freep) PdEnvironment *from = NULL;
    PdGroup *groups;
    uint64_t end = 0;
    int r;

    r = pd_environment_new(&from);
    if (r == 0)
        r = pd_environment_read(from, PD_FEATURE_GROUP_DESC, body, swap);
    if (r < 0)
        return r;
    groups = reallocarray(env->groups, env->n_groups + from->n_groups + 1, sizeof(*groups));
    if (!groups)
        return -ENOMEM;
    env->groups = groups;
    for (size_t i = 0; i < from->n_groups; i++) {
        PdGroup *group = &from->groups[i];

        /* They follow on each other; one that goes back is not looked at. */
        if (group->leader < end)
            continue;
        end = MIN((uint64_t)group->leader + group->n_members, (uint64_t)n);
        if (!remake_group(group, new_index, (size_t)end) || has_group(env, group))
            continue;
        env->groups[env->n_groups++] = *group;
        group->name = NULL;
    }
    env->has[PD_FEATURE_GROUP_DESC] = env->n_groups > 0;
    qsort(env->groups, env->n_groups, sizeof(*env->groups), by_leader);
    return 0;
}
