/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/event-feature.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A group is stored as the index of its leader and the number of events, so a group that loses
 * events, or whose events move, is computed again. PdEnvironment encodes the result.
 */

/* False if the group can no longer be expressed. */
static bool event_feature_remake_group(PdGroup *group, const uint32_t *new_index, size_t end) {
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

static bool event_feature_has_group(const PdEnvironment *env, const PdGroup *group) {
    for (size_t i = 0; i < env->n_groups; i++)
        if (env->groups[i].leader == group->leader)
            return true;
    return false;
}

static int event_feature_by_leader(const void *a, const void *b) {
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

        /* Groups follow each other; one that overlaps an earlier one is ignored. */
        if (group->leader < end)
            continue;
        end = MIN((uint64_t)group->leader + group->n_members, (uint64_t)n);
        if (!event_feature_remake_group(group, new_index, (size_t)end) ||
            event_feature_has_group(env, group))
            continue;
        env->groups[env->n_groups++] = *group;
        group->name = NULL;
    }
    env->has[PD_FEATURE_GROUP_DESC] = env->n_groups > 0;
    qsort(env->groups, env->n_groups, sizeof(*env->groups), event_feature_by_leader);
    return 0;
}
