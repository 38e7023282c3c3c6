/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"
#include "util/macro.h"

/*
 * What a recording owes: mappings that were written without a build id, or with one that turned
 * out to be wrong. They are written again when the build id arrives, or without one. That costs a
 * pass over the mappings of the recording's processes, once in each sweep in which an answer
 * arrived.
 */

static bool emission_late_is_due(const Emission *e, ProcessImage *image) {
    const ProcessImage *code = emission_code_of(e, image);

    return code && code->owed & e->slot && code->is_due;
}

/* False: none had to be written. */
static bool emission_late_write_maps_due(Emission *e, uint32_t pid, const ProcessMaps *maps,
                                         bool all, uint64_t stamp) {
    PdTrailer trailer = emission_trailer(e, pid, pid, stamp);
    const ProcessMapping *m;
    bool any = false;
    size_t at = 0;

    while (maps && (m = maps_next(maps, &at))) {
        if (!all && !emission_late_is_due(e, m->image))
            continue;
        emission_write_mapping(e, &trailer, m);
        any = true;
    }
    return any;
}

/* A sample older than the floor got the state at its own time. */
static uint64_t emission_late_stamp_of(const EmittedProcess *m) {
    const History *h = m->emission->history;

    return m->floor_ns == h->floor_ns ? m->stamp_ns : history_stamp(h);
}

static void emission_late_write_state_due(const EmittedProcess *m) {
    const Process *p = m->process;
    uint64_t stamp = emission_late_stamp_of(m);
    bool over = emission_late_write_maps_due(m->emission, p->pid, p->before_exec, false, stamp);

    /* Write current mappings after those from before exec, because they overlap them. */
    emission_late_write_maps_due(m->emission, p->pid, p->maps, over, stamp);
}

static void emission_late_write_birth_due(const EmittedProcess *m) {
    History *h = m->emission->history;
    const Process *p = m->process;
    ProcessMaps *maps = maps_at(h, p, p->birth_ns);

    emission_late_write_maps_due(m->emission, p->pid, maps, false,
                                 MAX(p->birth_ns, history_stamp(h)));
    maps_put(&h->strings, maps);
}

static void emission_late_write_process_due(const EmittedProcess *m) {
    if (m->process->birth)
        emission_late_write_birth_due(m);
    else
        emission_late_write_state_due(m);
    for (const Entry *entry = m->process->queue.first; entry; entry = entry->next)
        if (entry->image && emission_late_is_due(m->emission, entry->image))
            emission_write_entry(m->emission, entry);
}

void emission_write_due(Emission *e) {
    size_t kept = 0;
    bool any = false;

    for (size_t i = 0; i < e->n_owed && !any; i++)
        any = emission_late_is_due(e, e->owed[i]);
    if (!any)
        return;
    for (const EmittedProcess *m = e->emitted; m; m = m->after)
        emission_late_write_process_due(m);
    for (size_t i = 0; i < e->n_owed; i++) {
        ProcessImage *image = e->owed[i];

        if (!image->is_due || !image_has_id(image)) {
            e->owed[kept++] = image;
            continue;
        }
        image->owed &= ~e->slot;
        images_put(&e->history->strings, image);
    }
    e->n_owed = kept;
}

bool emission_waits(const Emission *e) {
    for (size_t i = 0; i < e->n_owed; i++)
        if (e->owed[i]->waits || e->owed[i]->is_due)
            return true;
    return checks_wait(e->history, e->slot);
}
