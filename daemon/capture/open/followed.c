/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/followed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

/* The table of processes that a set of rings follows, in order of their pids. */

static const Followers followed_none;

const Followers *followed_of(const RingSet *set) {
    return set->followers ?: &followed_none;
}

Followers *followed_make(RingSet *set) {
    if (!set->followers)
        set->followers = calloc(1, sizeof(*set->followers));
    return set->followers;
}

void followed_done(RingSet *set) {
    Followers *all = set->followers;

    for (size_t i = 0; all && i < all->n; i++)
        free(all->items[i].tids);
    free(all ? all->items : NULL);
    free(all);
    set->followers = NULL;
}

/* The first one with that pid or a higher one. */
static size_t followed_place_of(const Followers *all, uint32_t pid) {
    size_t low = 0, high = all->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (all->items[middle].pid < pid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

Followed *followed_find(const RingSet *set, uint32_t pid) {
    const Followers *all = followed_of(set);
    size_t i = followed_place_of(all, pid);

    return i < all->n && all->items[i].pid == pid ? &all->items[i] : NULL;
}

void followed_forget(RingSet *set, Followed *followed) {
    Followers *all = set->followers;
    size_t i = (size_t)(followed - all->items);

    free(followed->tids);
    memmove(followed, followed + 1, (all->n - i - 1) * sizeof(*followed));
    all->n--;
}

Followed *followed_add(RingSet *set, const Followed *followed) {
    Followed *old = followed_find(set, followed->pid);
    Followers *all = followed_make(set);
    size_t i;

    if (old)
        followed_forget(set, old);
    if (!all || !array_grow(&all->items, &all->n))
        return NULL;
    all->n--;
    i = followed_place_of(all, followed->pid);
    memmove(&all->items[i + 1], &all->items[i], (all->n - i) * sizeof(*all->items));
    all->items[i] = *followed;
    all->n++;
    return &all->items[i];
}

int followed_compare_tids(const void *a, const void *b) {
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

bool followed_has_tid(const Followed *followed, int32_t tid) {
    uint32_t key = (uint32_t)tid;

    return followed->n_tids > 0 &&
           bsearch(&key, followed->tids, followed->n_tids, sizeof(key), followed_compare_tids);
}
