/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * The address spaces of the processes that are sampled, for a caller who asks for each sample. An
 * answer holds from one record of the process to the next and until the history changes. The last
 * few answers are kept, so that samples of the same process in the same sweep cost one comparison,
 * and a later sample only what the process mapped in between.
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

/* Applies the records of the process up to `time` from space->next on, or only passes them. */
static void history_space_go_on(History *h, Space *space, uint64_t time, bool applies) {
    const Entry *e = space->next;

    if (applies)
        maps_replay(h, space->process, e, time + 1, &space->maps);
    for (; e && e->time <= time; e = e->next)
        space->from_ns = e->time;
    space->next = e;
    space->until_ns = e ? e->time : UINT64_MAX;
}

static void history_space_begin(History *h, Space *space, const Process *p, uint64_t time) {
    bool is_folded = p->queue.first == NULL && (!p->birth || p->based);

    space->pid = p->pid;
    space->process = p;
    space->generation = h->generation;
    space->from_ns = p->birth_ns;
    space->next = p->queue.first;
    if (is_folded)
        space->maps = p->maps ? maps_ref(p->maps) : NULL;
    else
        space->maps = maps_at(h, p, time + 1);
    history_space_go_on(h, space, time, false);
}

const ProcessMaps *history_maps(History *h, uint32_t pid, uint64_t time) {
    Space *space = history_space_slot(h, pid);
    bool holds = space->pid == pid && space->generation == h->generation && time >= space->from_ns;
    const Process *p;

    if (holds && time < space->until_ns)
        return space->maps;
    p = process_find_born(h, pid, time);
    if (holds && p == space->process)
        history_space_go_on(h, space, time, true);
    else
        history_space_release(h, space);
    /* Until its baseline was read, its records show only a part of what it maps. */
    if (!p || !p->known)
        return NULL;
    if (space->generation == 0)
        history_space_begin(h, space, p, time);
    /* A later life of the pid would begin within the span. */
    if (process_find_born(h, pid, UINT64_MAX) != p)
        space->until_ns = time + 1;
    return space->maps;
}

uint64_t history_generation(const History *h) {
    return h->generation;
}
