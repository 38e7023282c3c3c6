/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "process/history/history-private.h"
#include "util/macro.h"

/*
 * Writes one record of the history into a recording, with the recording's own trailer, and a
 * mapping with the build id of its file. If the build id is unknown, the file gets a name that no
 * file has, and the recording remembers it as owed: the mapping is written again with its build id
 * when the lookup is done.
 */

enum { MARKED_MAX = 4095 }; /* the longest path in a record */

PdTrailer emission_trailer(const Emission *e, uint32_t pid, uint32_t tid, uint64_t time) {
    PdTrailer trailer = e->trailer;

    trailer.pid = pid;
    trailer.tid = tid;
    trailer.cpu = 0;
    trailer.time = time;
    return trailer;
}

/* Appends the mark to the path, in `scratch`. */
static Bytes emission_record_mark_path(Bytes path, uint8_t scratch[MARKED_MAX]) {
    const size_t n = sizeof(PD_NO_BUILD_ID) - 1;

    path.size = MIN(path.size, MARKED_MAX - n);
    memcpy(scratch, path.data, path.size);
    memcpy(scratch + path.size, PD_NO_BUILD_ID, n);
    return (Bytes){.data = scratch, .size = path.size + n};
}

bool emission_owe(Emission *e, ProcessImage *image) {
    ProcessBudget *budget = &e->history->strings.budget;
    size_t n = MAX(e->owed_allocated * 2, (size_t)16);
    ProcessImage **owed;

    if (image->owed & e->slot)
        return true;
    if (e->n_owed == e->owed_allocated) {
        owed = budget_resize(budget, e->owed, e->owed_allocated * sizeof(*e->owed),
                             n * sizeof(*e->owed));
        if (!owed)
            return false;
        e->owed = owed;
        e->owed_allocated = n;
    }
    e->owed[e->n_owed++] = image_ref(image);
    image->owed |= e->slot;
    return true;
}

void emission_forget_owed(Emission *e) {
    ProcessStrings *strings = &e->history->strings;

    for (size_t i = 0; i < e->n_owed; i++) {
        e->owed[i]->owed &= ~e->slot;
        images_put(strings, e->owed[i]);
    }
    budget_free(&strings->budget, e->owed, e->owed_allocated * sizeof(*e->owed));
    e->owed = NULL;
    e->n_owed = e->owed_allocated = 0;
}

/* Makes the recording wait for the build id of the image, which is looked up now. */
static void emission_record_await(Emission *e, ProcessImage *image, const PdMmap *m,
                                  uint64_t stamp) {
    History *h = e->history;

    /* A lookup that found nothing is repeated when a recording names the image again. */
    if (!emission_owe(e, image) || h->identify != HISTORY_ASKS)
        return;
    image_want(h, image, m->pid, m->start, m->start + m->length);
    /* It is written again at the same time. */
    image_wait(h, image, MAX(stamp - 1, h->floor_ns));
}

ProcessImage *emission_code_of(const Emission *e, ProcessImage *image) {
    if (!image_is_data(image))
        return image;
    return e->has_data ? images_find_code(&e->history->strings, image) : NULL;
}

static bool emission_record_needs_mark(const Emission *e, const PdMmap *m) {
    return m->build_id_size == 0 && e->history->identify != HISTORY_UNCHANGED &&
           path_is_file(m->filename);
}

/*
 * `mmap` has process and addresses, the image has the file. A data mapping gets the build id of its
 * file's code, and is left out if the file is not mapped as code: the kernel and ld.so map what
 * precedes the code of a file just before the code, so both are nearly always known by now.
 */
static void emission_record_write_map(Emission *e, const PdTrailer *trailer, PdMmap *mmap,
                                      ProcessImage *image) {
    ProcessImage *code = emission_code_of(e, image);
    uint16_t misc = PD_MISC_USER | (code != image ? PD_MISC_MMAP_DATA : 0);
    uint8_t scratch[MARKED_MAX];

    if (!code)
        return;
    mmap->major = image->major;
    mmap->minor = image->minor;
    mmap->inode = image->inode;
    mmap->generation = image->generation;
    mmap->build_id_size = code->build_id_size ?: code->found_id_size;
    mmap->build_id = code->build_id_size ? code->build_id : code->found_id;
    mmap->prot = image->prot;
    mmap->flags = image->flags;
    mmap->filename = name_bytes(image->path);
    if (emission_record_needs_mark(e, mmap)) {
        emission_record_await(e, code, mmap, trailer->time);
        mmap->filename = emission_record_mark_path(mmap->filename, scratch);
    } else
        check_shown(e, code);
    pd_emit_mmap2(&e->pending, trailer, misc, mmap);
}

/* Writes a mapping whose image could not be allocated. */
static void emission_record_write_bare(Emission *e, const PdTrailer *trailer, const Entry *entry) {
    uint8_t scratch[MARKED_MAX];
    PdBody body;
    PdRecord record = entry_parse(entry, &body);

    if (record.type == PD_RECORD_MMAP2 && record.misc & PD_MISC_MMAP_DATA)
        return;
    if (record.type != PD_RECORD_MMAP2 || !emission_record_needs_mark(e, &body.mmap)) {
        pd_emit_record(&e->pending, trailer, entry_record(entry));
        return;
    }
    body.mmap.filename = emission_record_mark_path(pd_filename_unmark(body.mmap.filename), scratch);
    pd_emit_mmap2(&e->pending, trailer, PD_MISC_USER, &body.mmap);
}

void emission_write_entry(Emission *e, const Entry *entry) {
    uint64_t floor = history_stamp(e->history);
    PdTrailer trailer = emission_trailer(e, entry->pid, entry->tid, MAX(entry->time, floor));
    PdBody body;

    trailer.cpu = entry->cpu;
    if (!entry->image) {
        emission_record_write_bare(e, &trailer, entry);
        return;
    }
    entry_parse(entry, &body);
    emission_record_write_map(e, &trailer, &body.mmap, entry->image);
}

void emission_write_mapping(Emission *e, const PdTrailer *trailer, const ProcessMapping *m) {
    PdMmap mmap = {.pid = trailer->pid,
                   .tid = trailer->pid,
                   .start = m->start,
                   .length = m->end - m->start,
                   .pgoff = m->pgoff};

    emission_record_write_map(e, trailer, &mmap, m->image);
}

void emission_kernel_record(Emission *e, Bytes record, uint64_t stamp) {
    PdTrailer trailer = emission_trailer(e, 0, 0, stamp);

    pd_emit_record(&e->pending, &trailer, record);
}
