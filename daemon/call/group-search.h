/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Searches the tree of control groups by name, for calls that wait for the result. */

#include "control/control.h"
#include "util/near.h"

enum { GROUPS_FOUND_MAX = 4 };

typedef struct GroupsFound {
    char *paths[GROUPS_FOUND_MAX]; /* the groups of the unit, none of them inside another */
    size_t n;
    bool more;      /* there are more than GROUPS_FOUND_MAX */
    NearNames near; /* similar names, in case of a typo */
} GroupsFound;

/* The callback ends the call. */
typedef void (*GroupsFoundCallback)(void *userdata, Call *call, const GroupsFound *found);

typedef struct GroupSearches GroupSearches;

int group_searches_new(GroupSearches **ret);
/* All calls must have ended. */
GroupSearches *group_searches_free(GroupSearches *searches);
DEFINE_CLEANUP(GroupSearches *, group_searches_free);

/* Copies `wanted`: the name of a unit or, without `by_unit`, a path that does not exist, for which
 * only similar paths are searched. The caller must start a walk afterwards. */
int group_search_add(GroupSearches *searches, Call *call, const char *wanted, bool by_unit,
                     GroupsFoundCallback on_found, void *userdata);
/* Called for each group that a walk finds, parents first. */
int group_searches_offer(GroupSearches *searches, const char *path);
/* The walk that began at begin_ns is complete: calls back for each search that began before it. */
void group_searches_end(GroupSearches *searches, uint64_t begin_ns);
