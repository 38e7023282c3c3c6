/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call/group-search.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "util/cgroup-path.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The scan thread walks the tree and reports every group; each search keeps the groups that match.
 * A search may begin in the middle of a walk. It gets the rest of that walk too, but it ends only
 * with a walk that began later and so saw the whole tree. A group may therefore be reported twice;
 * it is kept once.
 */

typedef struct GroupSearch GroupSearch;

struct GroupSearch {
    LIST_ENTRY(GroupSearch) list;
    GroupSearches *searches;
    Call *call; /* NULL: the client is gone */
    bool by_unit;
    uint64_t begin_ns;
    GroupsFoundCallback on_found;
    void *userdata;
    GroupsFound found;
    const char *plain; /* `wanted` with the escapes of a printed name removed */
    char wanted[];
};

struct GroupSearches {
    LIST_HEAD(, GroupSearch) all;
};

int group_searches_new(GroupSearches **ret) {
    *ret = calloc(1, sizeof(**ret));
    return *ret ? 0 : -ENOMEM;
}

static void group_search_free(GroupSearch *search) {
    LIST_REMOVE(search, list);
    for (size_t i = 0; i < search->found.n; i++)
        free(search->found.paths[i]);
    free(search);
}

GroupSearches *group_searches_free(GroupSearches *searches) {
    if (!searches)
        return NULL;
    while (!LIST_EMPTY(&searches->all))
        group_search_free(LIST_FIRST(&searches->all));
    free(searches);
    return NULL;
}

static void group_search_on_gone(void *userdata) {
    ((GroupSearch *)userdata)->call = NULL;
}

int group_search_add(GroupSearches *searches, Call *call, const char *wanted, bool by_unit,
                     GroupsFoundCallback on_found, void *userdata) {
    size_t n = strlen(wanted) + 1;
    GroupSearch *search = calloc(1, sizeof(*search) + 2 * n);

    if (!search)
        return -ENOMEM;
    memcpy(search->wanted, wanted, n);
    text_unescape(wanted, search->wanted + n);
    search->plain = search->wanted + n;
    search->call = call;
    search->by_unit = by_unit;
    search->begin_ns = clock_monotonic_ns();
    search->on_found = on_found;
    search->userdata = userdata;
    LIST_INSERT_HEAD(&searches->all, search, list);
    call_on_gone(call, group_search_on_gone, search);
    return 0;
}

static bool group_search_is_at_or_below(const char *path, const char *top) {
    size_t n = strlen(top);

    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

static bool group_search_matches(const GroupSearch *search, Bytes path) {
    return search->by_unit &&
           (cgroup_unit_matches(path, search->wanted) || cgroup_unit_matches(path, search->plain));
}

static int group_search_keep(GroupsFound *found, const char *path) {
    for (size_t i = 0; i < found->n; i++)
        if (group_search_is_at_or_below(path, found->paths[i]))
            return 0;
    if (found->n == GROUPS_FOUND_MAX) {
        found->more = true;
        return 0;
    }
    found->paths[found->n] = strdup(path);
    if (!found->paths[found->n])
        return -ENOMEM;
    found->n++;
    return 0;
}

int group_searches_offer(GroupSearches *searches, const char *path) {
    Bytes bytes = {.data = (const uint8_t *)path, .size = strlen(path)};
    int r = 0;

    for (GroupSearch *search = LIST_FIRST(&searches->all); r == 0 && search;
         search = LIST_NEXT(search, list))
        if (group_search_matches(search, bytes))
            r = group_search_keep(&search->found, path);
        else {
            cgroup_path_offer(&search->found.near, bytes, search->wanted, search->by_unit);
            cgroup_path_offer(&search->found.near, bytes, search->plain, search->by_unit);
        }
    return r;
}

void group_searches_end(GroupSearches *searches, uint64_t begin_ns) {
    for (GroupSearch *search = LIST_FIRST(&searches->all), *next; search; search = next) {
        next = LIST_NEXT(search, list);
        if (search->begin_ns > begin_ns)
            continue;
        if (search->call)
            search->on_found(search->userdata, search->call, &search->found);
        group_search_free(search);
    }
}
