/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * The address spaces of the processes that are sampled, for a caller who asks for each sample. An
 * answer holds from one record of the process to the next and until the history changes. The last
 * few answers are kept, so that samples of the same process in the same sweep cost one comparison.
 */

static Space *history_space_slot(History *h, uint32_t pid) {
    return &h->spaces[pid % SPACES_MAX];
}

static void history_space_release(History *h, Space *space) {
    space->maps = maps_put(&h->strings, space->maps);
    space->generation = 0;
}

void spaces_release(History *h) {
    for (size_t i = 0; i < SPACES_MAX; i++)
        history_space_release(h, &h->spaces[i]);
}

/* Between which of its records `time` lies. */
static void history_space_set_span(Space *space, const Process *p, uint64_t time) {
    const Entry *e = p->queue.first;

    space->from_ns = p->birth_ns;
    space->until_ns = UINT64_MAX;
    for (; e && e->time <= time; e = e->next)
        space->from_ns = MAX(space->from_ns, e->time);
    if (e)
        space->until_ns = e->time;
}

static ProcessMaps *history_space_maps(History *h, const Process *p, uint64_t time) {
    bool is_folded = p->queue.first == NULL && (!p->birth || p->based);

    if (is_folded)
        return p->maps ? maps_ref(p->maps) : NULL;
    return maps_at(h, p, time + 1);
}

const ProcessMaps *history_maps(History *h, uint32_t pid, uint64_t time) {
    Space *space = history_space_slot(h, pid);
    const Process *p;

    if (space->pid == pid && space->generation == h->generation && time >= space->from_ns &&
        time < space->until_ns)
        return space->maps;
    history_space_release(h, space);
    p = process_find_born(h, pid, time);
    if (!p)
        return NULL;
    space->pid = pid;
    space->maps = history_space_maps(h, p, time);
    space->generation = h->generation;
    history_space_set_span(space, p, time);
    /* A later life of the pid would begin within the span. */
    if (process_find_born(h, pid, UINT64_MAX) != p)
        space->until_ns = time + 1;
    return space->maps;
}

uint64_t history_generation(const History *h) {
    return h->generation;
}
