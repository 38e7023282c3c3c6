/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Searches the tree of control groups by name, for calls that wait for the answer. */

#include "control/control.h"
#include "util/near.h"

enum { GROUPS_FOUND_MAX = 4 };

typedef struct GroupsFound {
    char *paths[GROUPS_FOUND_MAX]; /* of the unit's groups; none lies below another */
    size_t n;
    bool more;      /* there are more than that */
    NearNames near; /* names that may be meant */
} GroupsFound;

/* Ends the call. */
typedef void (*GroupsFoundCallback)(void *userdata, Call *call, const GroupsFound *found);

typedef struct GroupSearches GroupSearches;

int group_searches_new(GroupSearches **ret);
/* The calls are over by then. */
GroupSearches *group_searches_free(GroupSearches *searches);
DEFINE_CLEANUP(GroupSearches *, group_searches_free);

/* `wanted` is copied: the name of a unit, or without `by_unit` a path that does not exist, of which
 * only near ones are found. A walk has to begin after this. */
int group_search_add(GroupSearches *searches, Call *call, const char *wanted, bool by_unit,
                     GroupsFoundCallback on_found, void *userdata);
/* A group that a walk finds, parents first. */
int group_searches_offer(GroupSearches *searches, const char *path);
/* A walk that began at that moment is complete: calls back for those that waited for it. */
void group_searches_end(GroupSearches *searches, uint64_t begin_ns);
