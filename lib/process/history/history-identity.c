/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * Which images recordings wait for. A program that has just started is sampled before its build id
 * was read. Its mappings are written without one, so that samples have their file even if the
 * recorder dies now, and the floor is held back. When the lookup is done, they are written again
 * with their original times, and perf, which sorts by time, takes the second for all samples. After
 * a while (for example on a file system that hangs) the floor moves on, and a build id that is
 * found later holds from the floor on.
 */

void history_set_identify(History *h, HistoryIdentify identify) {
    h->identify = identify;
}

static void history_identity_expire_waits(History *h, uint64_t start_ns) {
    size_t kept = 0;

    for (size_t i = 0; i < h->n_waiting; i++) {
        Waiting *w = &h->waiting[i];

        if (w->image->waits && w->due_ns > start_ns) {
            h->waiting[kept++] = *w;
            continue;
        }
        if (w->image->waits) {
            w->image->waits = false;
            w->image->is_late = true;
        }
        images_put(&h->strings, w->image);
    }
    h->n_waiting = kept;
}

void identity_settle(History *h, uint64_t start_ns) {
    history_identity_expire_waits(h, start_ns);
    checks_settle(h, start_ns);
    checks_corrected(h);
    if (!h->first_due)
        return;
    for (size_t i = 0; i < EMISSIONS_MAX; i++)
        if (h->emissions[i])
            emission_write_due(h->emissions[i]);
    for (ProcessImage *image; (image = h->first_due);) {
        h->first_due = image->next_due;
        image->is_due = false;
        images_put(&h->strings, image);
    }
}

uint64_t identity_floor(const History *h) {
    uint64_t floor = checks_floor(h);

    for (size_t i = 0; i < h->n_waiting; i++)
        floor = MIN(floor, h->waiting[i].image->hold_ns);
    return floor;
}

uint64_t history_waits_until(const History *h) {
    uint64_t until = checks_until(h);

    for (size_t i = 0; i < h->n_waiting; i++)
        if (h->waiting[i].image->waits)
            until = MAX(until, h->waiting[i].due_ns);
    return until;
}

uint64_t history_waits_since(const History *h) {
    uint64_t since = checks_since(h);

    for (size_t i = 0; i < h->n_waiting; i++)
        since = MIN(since, h->waiting[i].since_ns);
    return since;
}

bool history_has_answers(const History *h) {
    return h->n_waiting > 0 && history_waits_until(h) == 0;
}

bool history_learn_build_id(History *h, const PdMmap *mmap, uint64_t time) {
    Process *p = h->n_marked > 0 ? process_find_born(h, mmap->pid, time) : NULL;
    ProcessMaps *maps = p ? maps_at(h, p, time + 1) : NULL;
    const ProcessMapping *m = maps ? maps_find(maps, mmap->start) : NULL;
    bool learns = m && mmap->build_id_size > 0 && !image_has_id(m->image) &&
                  m->start == mmap->start && m->pgoff == mmap->pgoff &&
                  bytes_equal(name_bytes(m->image->path), mmap->filename);

    if (learns)
        image_found(h, m->image, (Bytes){.data = mmap->build_id, .size = mmap->build_id_size});
    maps_put(&h->strings, maps);
    return learns;
}

void identity_done(History *h) {
    for (size_t i = 0; i < h->n_waiting; i++)
        images_put(&h->strings, h->waiting[i].image);
    for (ProcessImage *image; (image = h->first_due);) {
        h->first_due = image->next_due;
        images_put(&h->strings, image);
    }
    budget_free(&h->strings.budget, h->waiting, WAITING_MAX * sizeof(*h->waiting));
}
