/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history-private.h"

/*
 * Images and their build ids. The kernel is not asked for build ids; whoever reads them from the
 * files is told of each image once, soon after it was mapped first, and what it finds stays with
 * the image. The last few hundred images stay although nobody maps them any more, so that a program
 * that is run again and again is looked up once.
 */

/* Ring of the images made last. */
static void retain(History *h, ProcessImage *image) {
    ProcessImage **slot;

    if (!h->retained)
        h->retained = budget_alloc(&h->strings.budget, RETAINED_MAX * sizeof(*h->retained));
    if (!h->retained)
        return;
    slot = &h->retained[h->n_retained++ % RETAINED_MAX];
    images_put(&h->strings, *slot);
    *slot = image_ref(image);
}

ProcessImage *image_of(History *h, const PdMmap *mmap) {
    ProcessImage *image = images_get(&h->strings, mmap, (Bytes){}, false);

    if (!image) {
        h->dropped++;
        return NULL;
    }
    if (image->refs == 1)
        retain(h, image);
    return image;
}

static bool is_file(const ProcessImage *image) {
    const uint8_t *path = image->path->text;

    return image->inode != 0 && image->build_id_size == 0 && path[0] == '/' && path[1] != '/' &&
           !memchr(path, '[', image->path->size);
}

void image_want(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end) {
    Wanted *slot;

    if (image->asked || !is_file(image))
        return;
    if (!h->wanted)
        h->wanted = budget_alloc(&h->strings.budget, WANTED_MAX * sizeof(*h->wanted));
    /* Full of questions that nobody has taken yet: it is asked again when it is mapped again. */
    if (!h->wanted || h->wanted_end - h->wanted_next >= WANTED_MAX)
        return;
    slot = &h->wanted[h->wanted_end % WANTED_MAX];
    images_put(&h->strings, slot->image);
    *slot = (Wanted){.image = image_ref(image),
                     .serial = h->wanted_end++,
                     .pid = pid,
                     .start = start,
                     .end = end};
    image->asked = true;
}

int history_next_wanted(History *h, HistoryWanted *ret) {
    const ProcessImage *image;
    const Wanted *slot;

    if (h->wanted_next == h->wanted_end)
        return 0;
    slot = &h->wanted[h->wanted_next++ % WANTED_MAX];
    image = slot->image;
    ret->image = slot->serial;
    ret->pid = slot->pid;
    ret->start = slot->start;
    ret->end = slot->end;
    ret->major = image->major;
    ret->minor = image->minor;
    ret->inode = image->inode;
    ret->generation = image->generation;
    memcpy(ret->path, image->path->text, image->path->size);
    ret->path[image->path->size] = 0;
    return 1;
}

void history_set_build_id(History *h, uint64_t image, Bytes build_id) {
    Wanted *slot = h->wanted && image < h->wanted_next ? &h->wanted[image % WANTED_MAX] : NULL;

    if (!slot || !slot->image || slot->serial != image)
        return;
    if (build_id.size <= sizeof(slot->image->found_id)) {
        slot->image->found_id_size = (uint8_t)build_id.size;
        if (build_id.size > 0)
            memcpy(slot->image->found_id, build_id.data, build_id.size);
    }
    slot->image = images_put(&h->strings, slot->image);
}

void images_forget(History *h) {
    for (size_t i = 0; h->retained && i < RETAINED_MAX; i++)
        images_put(&h->strings, h->retained[i]);
    for (size_t i = 0; h->wanted && i < WANTED_MAX; i++)
        images_put(&h->strings, h->wanted[i].image);
    budget_free(&h->strings.budget, h->retained, RETAINED_MAX * sizeof(*h->retained));
    budget_free(&h->strings.budget, h->wanted, WANTED_MAX * sizeof(*h->wanted));
}
