/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "process/history/history-private.h"
#include "util/macro.h"

/*
 * Images and their build ids. The kernel is not asked for build ids. Each image is looked up once,
 * soon after it was first mapped, and keeps the result until a check shows that the file was
 * overwritten (history-check.c). If nothing was found, the lookup is
 * repeated a few times, whenever a recording names the image. The last few hundred images are kept
 * even if nothing maps them any more, so that a program that is started again and again is looked
 * up once.
 */

#define WAIT_NS 3000000000ULL /* the longest wait for a build id */

/* Adds the image to the ring of the latest images. */
void image_retain(History *h, ProcessImage *image) {
    ProcessImage **slot;

    if (!h->retained)
        h->retained = budget_alloc(&h->strings.budget, RETAINED_MAX * sizeof(*h->retained));
    if (!h->retained)
        return;
    slot = &h->retained[h->n_retained++ % RETAINED_MAX];
    images_put(&h->strings, *slot);
    *slot = image_ref(image);
}

void history_set_vdso(History *h, Bytes build_id) {
    if (build_id.size == 0 || build_id.size > sizeof(h->vdso_id))
        return;
    memcpy(h->vdso_id, build_id.data, build_id.size);
    h->vdso_id_size = (uint8_t)build_id.size;
}

/* A 32-bit process has another vdso, below 4 GiB. */
static bool history_image_is_known_vdso(const History *h, const PdMmap *mmap) {
    return h->vdso_id_size > 0 && mmap->build_id_size == 0 && mmap->inode == 0 &&
           mmap->start > UINT32_MAX && bytes_equal_str(mmap->filename, "[vdso]");
}

ProcessImage *image_of(History *h, const PdMmap *mmap) {
    PdMmap identified = *mmap;
    ProcessImage *image;

    if (history_image_is_known_vdso(h, mmap)) {
        identified.build_id = h->vdso_id;
        identified.build_id_size = h->vdso_id_size;
    }
    image = images_get(&h->strings, &identified, (Bytes){}, false);

    if (!image) {
        h->dropped++;
        return NULL;
    }
    if (image->refs == 1)
        image_retain(h, image);
    return image;
}

bool image_has_id(const ProcessImage *image) {
    return image->build_id_size > 0 || image->found_id_size > 0;
}

/* Memory to which the kernel gives a path although it is no file; perf looks for no symbols in
 * it. */
static bool history_image_is_memory(Bytes path) {
    static const char *const prefixes[] = {"//", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
        if (path.size >= strlen(prefixes[i]) &&
            memcmp(path.data, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool path_is_file(Bytes path) {
    return path.size > 0 && path.data[0] == '/' && !history_image_is_memory(path);
}

static bool history_image_can_be_read(const ProcessImage *image) {
    Bytes path = name_bytes(image->path);

    return image->inode != 0 && path.size > 1 && path.data[0] == '/' && path.data[1] != '/';
}

void image_want(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end) {
    if (image->tries < TRIES_MAX && h->identify != HISTORY_MARKS && !image_is_data(image) &&
        !image_has_id(image) && history_image_can_be_read(image))
        image_ask(h, image, pid, start, end);
}

void image_ask(History *h, ProcessImage *image, uint32_t pid, uint64_t start, uint64_t end) {
    /* Half of the queue is left to files without a build id. */
    uint64_t limit = image->found_id_size > 0 ? WANTED_MAX / 2 : WANTED_MAX;
    Wanted *slot;

    if (image->asked)
        return;
    if (!h->wanted)
        h->wanted = budget_alloc(&h->strings.budget, WANTED_MAX * sizeof(*h->wanted));
    /* The queue is full of unanswered lookups: the image is queued again when a recording names
     * it. */
    if (!h->wanted || h->wanted_end - h->wanted_first >= limit)
        return;
    slot = &h->wanted[h->wanted_end % WANTED_MAX];
    *slot = (Wanted){.image = image_ref(image),
                     .serial = h->wanted_end++,
                     .pid = pid,
                     .start = start,
                     .end = end,
                     .checks = image->found_id_size > 0};
    image->asked = true;
}

void wanted_describe(const Wanted *slot, HistoryWanted *ret) {
    const ProcessImage *image = slot->image;
    const ImageCheck *check = image->check;

    ret->image = slot->serial;
    ret->checks = slot->checks;
    ret->version = image->version;
    ret->pid = check ? check->pid : slot->pid;
    ret->start = check ? check->start : slot->start;
    ret->end = check ? check->end : slot->end;
    ret->major = image->major;
    ret->minor = image->minor;
    ret->inode = image->inode;
    ret->generation = image->generation;
    memcpy(ret->path, image->path->text, image->path->size);
    ret->path[image->path->size] = 0;
}

int history_next_wanted(History *h, HistoryWanted *ret) {
    Wanted *slot;

    if (h->wanted_next == h->wanted_end)
        return 0;
    slot = &h->wanted[h->wanted_next++ % WANTED_MAX];
    slot->image->is_running = true;
    slot->asked_ns = h->sweep_ns;
    wanted_describe(slot, ret);
    return 1;
}

void history_put_back_wanted(History *h) {
    assert(h->wanted_next > h->wanted_first);
    h->wanted_next--;
    h->wanted[h->wanted_next % WANTED_MAX].image->is_running = false;
}

Wanted *wanted_find(const History *h, uint64_t number) {
    Wanted *slot = h->wanted && number < h->wanted_next ? &h->wanted[number % WANTED_MAX] : NULL;

    return slot && slot->image && slot->serial == number ? slot : NULL;
}

void wanted_end(History *h, Wanted *slot) {
    slot->image = images_put(&h->strings, slot->image);
    while (h->wanted_first < h->wanted_next && !h->wanted[h->wanted_first % WANTED_MAX].image)
        h->wanted_first++;
}

void image_wait(History *h, ProcessImage *image, uint64_t hold_ns) {
    if (image->waits)
        image->hold_ns = MIN(image->hold_ns, hold_ns);
    if (image->waits || !image->asked || image->is_late)
        return;
    if (!h->waiting)
        h->waiting = budget_alloc(&h->strings.budget, WAITING_MAX * sizeof(*h->waiting));
    if (!h->waiting || h->n_waiting == WAITING_MAX)
        return;
    h->waiting[h->n_waiting++] = (Waiting){
        .image = image_ref(image), .since_ns = h->sweep_ns, .due_ns = h->sweep_ns + WAIT_NS};
    image->hold_ns = hold_ns;
    image->waits = true;
}

void image_set_due(History *h, ProcessImage *image) {
    if (image->is_due || image->owed == 0)
        return;
    image->is_due = true;
    image->next_due = h->first_due;
    h->first_due = image_ref(image);
}

void image_count_unidentified(History *h, ProcessImage *image, bool unidentified) {
    if (image->counted == unidentified)
        return;
    image->counted = unidentified;
    h->unidentified += unidentified ? 1 : (uint64_t)-1;
}

void image_found(History *h, ProcessImage *image, Bytes build_id) {
    image->asked = image->is_running = image->is_late = false;
    if (build_id.size == 0 || build_id.size > sizeof(image->found_id)) {
        image->tries++;
        image_count_unidentified(h, image, path_is_file(name_bytes(image->path)));
    } else {
        image->found_id_size = (uint8_t)build_id.size;
        memcpy(image->found_id, build_id.data, build_id.size);
        image->sure_ns = h->sweep_ns;
        image_count_unidentified(h, image, false);
    }
    if (image_has_id(image))
        image_set_due(h, image);
    image->waits = false;
}

void history_set_build_id(History *h, uint64_t number, Bytes build_id, uint64_t version) {
    Wanted *slot = wanted_find(h, number);

    if (!slot || slot->checks)
        return;
    slot->image->version = version;
    image_found(h, slot->image, build_id);
    wanted_end(h, slot);
}

void images_forget(History *h) {
    for (size_t i = 0; h->retained && i < RETAINED_MAX; i++)
        images_put(&h->strings, h->retained[i]);
    for (size_t i = 0; h->wanted && i < WANTED_MAX; i++)
        images_put(&h->strings, h->wanted[i].image);
    budget_free(&h->strings.budget, h->retained, RETAINED_MAX * sizeof(*h->retained));
    budget_free(&h->strings.budget, h->wanted, WANTED_MAX * sizeof(*h->wanted));
}
