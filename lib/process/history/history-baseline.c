/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "process/history/history-private.h"

/*
 * Takes in what was read from /proc. An unknown process takes its state from there, and so do the
 * children that it forked meanwhile; recordings that have samples of them get what was missing. A
 * known process is compared: a difference means that side-band was lost, and is entered as a
 * generated record, which is then treated like any other.
 */

static Bytes history_baseline_bytes_of(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

static bool history_baseline_heard_between(const Process *p, uint64_t begin, uint64_t end) {
    if (p->folded_ns >= begin)
        return true;
    for (const Entry *e = p->queue.first; e && e->time <= end; e = e->next)
        if (e->time >= begin)
            return true;
    return false;
}

static bool history_baseline_is_skipped(const History *h, const PdMmap *mmap) {
    return prot_is_data(mmap->prot) && (!h->keeps_data || !mmap_is_needed(h, mmap));
}

static void history_baseline_fill_maps(History *h, Process *p, const Baseline *b) {
    p->maps = maps_put(&h->strings, p->maps);
    for (size_t i = 0; i < b->n_maps; i++) {
        const PdMmap *mmap = &b->maps[i];
        ProcessImage *image;

        if (history_baseline_is_skipped(h, mmap))
            continue;
        image = image_of(h, mmap);
        maps_apply(h, &p->maps, mmap, image);
        if (image)
            image_want(h, image, p->pid, mmap->start, mmap->start + mmap->length);
        images_put(&h->strings, image);
    }
}

static void history_baseline_fill_tasks(History *h, Process *p, const Baseline *b) {
    h->mark++;
    for (size_t i = 0; i < b->n_threads; i++) {
        ProcessName *comm = history_name(h, history_baseline_bytes_of(b->threads[i].comm));
        Task *task;

        if (b->threads[i].tid == p->pid) {
            process_set_comm(h, p, comm, b->begin_ns);
            continue;
        }
        task = task_get(h, p, b->threads[i].tid);
        if (!task) {
            names_put(&h->strings.names, &h->strings.budget, comm);
            continue;
        }
        task->mark = h->mark;
        task_set_comm(h, task, comm, b->begin_ns);
    }
    for (Task *t = p->tasks, *after; t; t = after) {
        after = t->after;
        if (t->mark != h->mark)
            task_free(h, t);
    }
}

static void history_baseline_emit_namespaces(Buffer *out, const Process *p, const Baseline *b) {
    pd_emit_namespaces(out, NULL,
                       &(PdNamespaces){.pid = p->pid,
                                       .tid = p->pid,
                                       .n = BASELINE_NAMESPACES,
                                       .links = {.data = (const uint8_t *)b->namespaces,
                                                 .size = sizeof(b->namespaces)}});
}

static void history_baseline_fill_namespaces(History *h, Process *p, const Baseline *b) {
    _cleanup_(buffer_done) Buffer record = {};

    if (!b->has_namespaces || p->namespaces)
        return;
    history_baseline_emit_namespaces(&record, p, b);
    if (buffer_error(&record) == 0)
        process_set_namespaces(h, p, buffer_bytes(&record));
}

static void history_baseline_fill_emitted(Process *p) {
    for (EmittedProcess *m = p->emitted; m; m = m->next)
        emitted_process_fill(m);
}

/* What the child did since its birth overrides what it inherited. */
static void history_baseline_inherit(History *h, Process *child, const Process *parent) {
    ProcessMaps *maps = parent->maps ? maps_ref(parent->maps) : NULL;
    const ProcessMapping *m;
    size_t at = 0;

    while (maps && child->maps && (m = maps_next(child->maps, &at))) {
        ProcessMapping copy = *m;

        image_ref(copy.image);
        h->dropped += maps_insert(&h->strings, &maps, &copy) < 0;
    }
    if (maps) {
        maps_put(&h->strings, child->maps);
        child->maps = maps;
    }
    if (!child->comm && parent->comm)
        process_set_comm(h, child, name_ref(parent->comm), child->birth_ns);
}

static void history_baseline_adopt_one(History *h, Process *p, const Process *parent) {
    if (!p->birth)
        history_baseline_inherit(h, p, parent);
    process_set_known(h, p);
    history_baseline_fill_emitted(p);
}

/* Completes processes that wait for a parent that is complete now; false when there are none. */
static bool history_baseline_adopt_further(History *h) {
    bool any = false;

    for (Process *p = h->first_unknown, *after; p; p = after) {
        const Process *parent = p->waits_on ? process_find_born(h, p->ppid, p->birth_ns) : NULL;

        after = p->unknown_after;
        if (!parent || parent->serial != p->waits_on || !parent->known || parent->waits_on)
            continue;
        history_baseline_adopt_one(h, p, parent);
        any = true;
    }
    return any;
}

static void history_baseline_adopt(History *h, const Process *parent) {
    bool any = false;

    for (Process *p = h->first_unknown, *after; p; p = after) {
        after = p->unknown_after;
        if (p->waits_on != parent->serial)
            continue;
        history_baseline_adopt_one(h, p, parent);
        any = true;
    }
    while (any)
        any = history_baseline_adopt_further(h);
}

static int history_baseline_fill(History *h, Process *p, const Baseline *b) {
    bool was_unknown = !p->known;

    history_baseline_fill_maps(h, p, b);
    history_baseline_fill_tasks(h, p, b);
    history_baseline_fill_namespaces(h, p, b);
    if (!p->birth)
        p->ppid = b->ppid;
    p->based = p->birth != NULL;
    h->generation++;
    if (!was_unknown)
        return 0;
    p->ended_ns = 0;
    process_set_known(h, p);
    history_baseline_fill_emitted(p);
    history_baseline_adopt(h, p);
    return 0;
}

static int history_baseline_infer(History *h, uint32_t pid, uint32_t tid, uint64_t time,
                                  const Buffer *record, ProcessImage *image) {
    Entry *e = buffer_error(record) == 0 ? entry_new(h, record->size) : NULL;

    if (!e)
        return 0;
    memcpy(e->record, record->data, record->size);
    e->time = time;
    e->pid = pid;
    e->tid = tid;
    e->image = image ? image_ref(image) : NULL;
    /* Data mappings were not recorded before they were wanted, so they are no difference. */
    h->inferred += !image || !image_is_data(image);
    entry_settle(h, e, NULL);
    return 0;
}

static int history_baseline_infer_task(History *h, PdRecordType type, uint32_t pid, uint32_t tid,
                                       uint64_t time) {
    _cleanup_(buffer_done) Buffer record = {};
    PdTask task = {.pid = pid, .ppid = pid, .tid = tid, .ptid = pid, .time = time};

    pd_emit_task(&record, NULL, type, 0, &task);
    return history_baseline_infer(h, pid, tid, time, &record, NULL);
}

static bool history_baseline_is_same(const ProcessMapping *m, const PdMmap *mmap) {
    const ProcessImage *image = m->image;
    bool same_file = mmap->inode != 0 && mmap->inode == image->inode &&
                     mmap->major == image->major && mmap->minor == image->minor;

    if (m->end - mmap->start < mmap->length || image_is_data(image) != prot_is_data(mmap->prot) ||
        (!same_file && !bytes_equal(name_bytes(image->path), mmap->filename)))
        return false;
    return mmap->inode == 0 || m->pgoff + (mmap->start - m->start) == mmap->pgoff;
}

/* When the difference came about is unknown: use the earliest possible time, so that no sample is
 * before it. */
static uint64_t history_baseline_change_ns(const History *h, const Process *p, const Baseline *b) {
    uint64_t heard = MAX(p->folded_ns, p->birth_ns);

    for (const Entry *e = p->queue.first; e && e->time <= b->end_ns; e = e->next)
        heard = MAX(heard, e->time);
    heard = MAX(heard, h->floor_ns);
    return MIN(heard + 1, b->end_ns);
}

static uint16_t history_baseline_misc_of(const PdMmap *mmap) {
    return PD_MISC_USER | (prot_is_data(mmap->prot) ? PD_MISC_MMAP_DATA : 0);
}

/* A recording of the recorder before says the build id of a mapping and not which file it is, which
 * unwind tables and symbols are asked by. The build id is looked up again: the mapping may be
 * another one by now. */
static void history_baseline_identify(History *h, Process *p, const ProcessImage *known,
                                      const PdMmap *mmap) {
    ProcessImage *image = image_of(h, mmap);

    if (!image)
        return;
    maps_apply(h, &p->maps, mmap, image);
    /* A mapping that was recorded behind the floor is applied later. */
    for (Entry *e = p->queue.first; e; e = e->next)
        if (e->image == known) {
            images_put(&h->strings, e->image);
            e->image = image_ref(image);
        }
    image_want(h, image, p->pid, mmap->start, mmap->start + mmap->length);
    images_put(&h->strings, image);
}

/* Whether /proc says no more of the mapping than is known. A child that was born after the floor
 * has the mappings of its parent until then, so of it all that is new becomes a record. */
static bool history_baseline_knows(History *h, Process *p, const ProcessMapping *there,
                                   const PdMmap *mmap) {
    if (!there || !history_baseline_is_same(there, mmap))
        return false;
    if (there->image->inode != 0 || mmap->inode == 0)
        return true;
    if (p->birth && !p->based)
        return false;
    history_baseline_identify(h, p, there->image, mmap);
    return true;
}

static int history_baseline_compare_maps(History *h, Process *p, const Baseline *b, uint64_t time) {
    ProcessMaps *maps = maps_at(h, p, b->end_ns + 1);
    int r = 0;

    for (size_t i = 0; i < b->n_maps && r == 0; i++) {
        _cleanup_(buffer_done) Buffer record = {};
        PdMmap mmap = b->maps[i];
        const ProcessMapping *there = maps ? maps_find(maps, mmap.start) : NULL;
        ProcessImage *image;

        if (history_baseline_is_skipped(h, &mmap) || history_baseline_knows(h, p, there, &mmap))
            continue;
        mmap.pid = mmap.tid = p->pid;
        pd_emit_mmap2(&record, NULL, history_baseline_misc_of(&mmap), &mmap);
        image = image_of(h, &mmap);
        r = history_baseline_infer(h, p->pid, p->pid, time, &record, image);
        images_put(&h->strings, image);
    }
    maps_put(&h->strings, maps);
    return r;
}

static bool history_baseline_in_queue(const Process *p, uint32_t tid) {
    for (const Entry *e = p->queue.first; e; e = e->next) {
        PdBody body;
        PdRecord record = entry_parse(e, &body);

        if ((record.type == PD_RECORD_FORK || record.type == PD_RECORD_EXIT) &&
            body.task.tid == tid)
            return true;
    }
    return false;
}

static int history_baseline_compare_thread(History *h, Process *p, const Baseline *b,
                                           const BaselineThread *t, uint64_t time) {
    _cleanup_(buffer_done) Buffer record = {};
    Task *task = t->tid != p->pid ? task_find(h, p, t->tid) : NULL;
    PdComm comm = {.pid = p->pid, .tid = t->tid, .comm = history_baseline_bytes_of(t->comm)};
    int r = 0;

    if (task)
        task->mark = h->mark;
    else if (t->tid != p->pid && !history_baseline_in_queue(p, t->tid))
        r = history_baseline_infer_task(h, PD_RECORD_FORK, p->pid, t->tid, time);
    if (r < 0 || b->is_kernel_thread ||
        bytes_equal(comm_at(h, p, t->tid, b->end_ns + 1), comm.comm))
        return r;
    pd_emit_comm(&record, NULL, &comm);
    return history_baseline_infer(h, p->pid, t->tid, time, &record, NULL);
}

static bool history_baseline_reports_namespaces(const Process *p) {
    for (const Entry *e = p->queue.first; e; e = e->next)
        if (load_u32(e->record, false) == PD_RECORD_NAMESPACES && e->tid == p->pid)
            return true;
    return false;
}

/* Adds namespaces from before they were recorded; later changes always come with side-band. */
static int history_baseline_compare_namespaces(History *h, Process *p, const Baseline *b,
                                               uint64_t time) {
    _cleanup_(buffer_done) Buffer record = {};

    if (!b->has_namespaces || p->namespaces || history_baseline_reports_namespaces(p))
        return 0;
    history_baseline_emit_namespaces(&record, p, b);
    return history_baseline_infer(h, p->pid, p->pid, time, &record, NULL);
}

static int history_baseline_compare(History *h, Process *p, const Baseline *b) {
    uint64_t time = history_baseline_change_ns(h, p, b);
    int r = history_baseline_compare_maps(h, p, b, time);

    if (r == 0)
        r = history_baseline_compare_namespaces(h, p, b, time);

    h->mark++;
    for (size_t i = 0; i < b->n_threads && r == 0; i++)
        r = history_baseline_compare_thread(h, p, b, &b->threads[i], time);
    for (Task *t = p->tasks; t && r == 0; t = t->after)
        if (t->mark != h->mark && !history_baseline_in_queue(p, t->tid))
            r = history_baseline_infer_task(h, PD_RECORD_EXIT, p->pid, t->tid, b->end_ns);
    return r;
}

int history_install(History *h, const Baseline *b) {
    Process *p = process_find_born(h, b->pid, b->begin_ns), *later;

    if ((int32_t)b->pid <= 0 || b->n_threads == 0 || b->end_ns < b->begin_ns)
        return -EINVAL;
    if (h->settled_ns < b->end_ns)
        return -EAGAIN;
    history_heard(h, b->begin_ns);
    later = p ? NULL : process_find(h, b->pid, b->begin_ns);
    if (later && later->birth_ns <= b->end_ns)
        return 1;
    if (!p) {
        p = process_new(h, b->pid, 0);
        if (!p)
            return -ENOMEM;
        process_set_unknown(h, p);
    }
    p->scanned_ns = b->begin_ns;
    if (!b->force && history_baseline_heard_between(p, b->begin_ns, b->end_ns))
        return 1;
    h->generation++;
    return p->known ? history_baseline_compare(h, p, b) : history_baseline_fill(h, p, b);
}

/* All its threads end now; the floor passes this moment later, as usual. */
static int history_baseline_end(History *h, Process *p) {
    int r = history_baseline_infer_task(h, PD_RECORD_EXIT, p->pid, p->pid, h->settled_ns);

    for (Task *t = p->tasks; t && r == 0; t = t->after)
        r = history_baseline_infer_task(h, PD_RECORD_EXIT, p->pid, t->tid, h->settled_ns);
    return r;
}

/* The parent whose state they inherit is gone, so they have to be read themselves. */
static void history_baseline_give_up_waiting(History *h) {
    for (Process *p = h->first_unknown, *after; p; p = after) {
        const Process *parent = p->waits_on ? process_find_born(h, p->ppid, p->birth_ns) : NULL;

        after = p->unknown_after;
        if (!p->waits_on || (parent && parent->serial == p->waits_on && parent->scanned_ns))
            continue;
        p->waits_on = 0;
        if (!p->known)
            continue;
        process_set_known(h, p);
        for (EmittedProcess *m = p->emitted; m; m = m->next)
            m->blank = false;
    }
    h->unknown_next = h->first_unknown;
}

int history_sweep_missing(History *h, uint64_t begin_ns) {
    Process *p;
    int r = 0;

    history_baseline_give_up_waiting(h);

    for (size_t at = 0; r == 0 && (p = hash_table_from(&h->processes, &at)); at++)
        for (; p && r == 0; p = p->next) {
            const Entry *last = p->queue.last;

            if (p->scanned_ns >= begin_ns || p->folded_ns >= begin_ns || p->birth_ns >= begin_ns ||
                (last && last->time >= begin_ns))
                continue;
            r = history_baseline_end(h, p);
        }
    return r;
}

int history_next_unknown(History *h, uint32_t *ret_pid) {
    while (h->unknown_next) {
        Process *p = h->unknown_next;

        h->unknown_next = p->unknown_after;
        if (p->waits_on)
            continue;
        *ret_pid = p->pid;
        return 1;
    }
    return 0;
}
