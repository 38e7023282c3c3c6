/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history-private.h"

/*
 * Files that are overwritten in place: device, inode and generation stay, and the build id is
 * another one. So a file whose build id is known is looked up again when a process maps it anew, at
 * most once a sweep. Recordings get the known build id at once and wait for the answer as for a new
 * file. If the file has changed, what was mapped since the last answer moves to a new image and is
 * written again; what was mapped before keeps its build id. If the file cannot be read any more,
 * for example because the process has ended, the known build id stays.
 */

void image_check(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end) {
    /* Half of the queue is left to files that have no build id yet. */
    if (h->identify != HISTORY_ASKS || image->found_id_size == 0 || image->is_replaced ||
        image_is_data(image) || h->wanted_end - h->wanted_first >= WANTED_MAX / 2)
        return;
    image_ask(h, image, pid, start, end);
    image_wait(h, image);
}

static void history_change_move_owed(History *h, ProcessImage *image, ProcessImage *newer) {
    for (size_t i = 0; i < EMISSIONS_MAX; i++)
        if (h->emissions[i] && image->owed & h->emissions[i]->slot)
            emission_replace_owed(h->emissions[i], image, newer);
}

static void history_change_move(History *h, Entry *e, ProcessImage *image, ProcessImage *newer) {
    if (e->image != image || e->order <= image->sure_order)
        return;
    e->image = image_ref(newer);
    images_put(&h->strings, image);
}

static void history_change_split(History *h, ProcessImage *image, Bytes build_id, bool is_late) {
    ProcessImage *newer = images_replace(&h->strings, image);

    /* Some of what was mapped since then may be in the state at the floor already. */
    if (!newer || is_late)
        image->found_id_size = 0;
    if (!newer) {
        h->dropped++;
        return;
    }
    for (Entry *e = h->oldest; e; e = e->newer)
        history_change_move(h, e, image, newer);
    for (size_t i = 0; i < h->n_fed; i++)
        history_change_move(h, h->fed[i], image, newer);
    history_change_move_owed(h, image, newer);
    newer->sure_order = h->serial;
    newer->tries = TRIES_MAX - 1;
    image_found(h, newer, build_id);
    image_set_due(h, newer);
    image_retain(h, newer);
    images_put(&h->strings, newer);
    h->generation++;
}

/* True: the file was overwritten. */
static bool history_change_conclude(History *h, ProcessImage *image, Bytes build_id,
                                    bool was_read) {
    Bytes known = {.data = image->found_id, .size = image->found_id_size};
    bool is_late = image->is_late, has_changed = was_read && !bytes_equal(known, build_id);

    image->asked = image->waits = image->is_late = false;
    if (has_changed)
        history_change_split(h, image, build_id, is_late);
    else
        history_change_move_owed(h, image, NULL);
    image->sure_order = h->serial;
    if (!has_changed)
        identity_stop_waiting(h, image);
    return has_changed;
}

bool history_set_build_id(History *h, uint64_t image, Bytes build_id, bool was_read,
                          HistoryWanted *ret_changed) {
    Wanted *slot = h->wanted && image < h->wanted_next ? &h->wanted[image % WANTED_MAX] : NULL;
    bool has_changed = false;

    if (!slot || !slot->image || slot->serial != image)
        return false;
    if (slot->image->found_id_size > 0)
        has_changed = history_change_conclude(h, slot->image, build_id, was_read);
    else
        image_found(h, slot->image, build_id);
    if (has_changed)
        wanted_describe(slot, ret_changed);
    slot->image = images_put(&h->strings, slot->image);
    while (h->wanted_first < h->wanted_next && !h->wanted[h->wanted_first % WANTED_MAX].image)
        h->wanted_first++;
    return has_changed;
}
