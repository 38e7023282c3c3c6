/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * The address spaces of the processes that are sampled, for a caller who asks for each sample. An
 * answer holds from one record of the process to the next and until the history changes. Each
 * process keeps its last answer, so that samples of the same process in the same sweep cost one
 * comparison, and a later sample only what the process mapped in between.
 */

/* Applies the records of the process up to `time` from space->next on, or only passes them. */
static void history_space_go_on(History *h, Process *p, uint64_t time, bool applies) {
    Space *space = &p->space;
    const Entry *e = space->next;

    if (applies)
        maps_replay(h, p, e, time + 1, &space->maps);
    for (; e && e->time <= time; e = e->next)
        space->from_ns = e->time;
    space->next = e;
    space->until_ns = e ? e->time : UINT64_MAX;
}

static void history_space_begin(History *h, Process *p, uint64_t time) {
    bool is_folded = p->queue.first == NULL && (!p->birth || p->based);
    Space *space = &p->space;

    space->generation = h->generation;
    space->from_ns = p->birth_ns;
    space->next = p->queue.first;
    if (is_folded)
        space->maps = p->maps ? maps_ref(p->maps) : NULL;
    else
        space->maps = maps_at(h, p, time + 1);
    history_space_go_on(h, p, time, false);
}

const ProcessMaps *history_maps(History *h, uint32_t pid, uint64_t time) {
    Process *p = process_find_born(h, pid, time);
    Space *space;
    bool had_maps;

    /* Until its baseline was read, its records show only a part of what it maps. */
    if (!p || !p->known)
        return NULL;
    space = &p->space;
    if (space->generation != h->generation || time < space->from_ns)
        space_release(h, p);
    had_maps = space->maps;
    if (space->generation == 0)
        history_space_begin(h, p, time);
    else if (time >= space->until_ns)
        history_space_go_on(h, p, time, true);
    space_list(h, p, had_maps);
    return space->maps;
}

uint64_t history_generation(const History *h) {
    return h->generation;
}
