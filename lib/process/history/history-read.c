/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "process/history/history.h"

#include <errno.h>

#include "process/history/history-private.h"

/*
 * Side-band is fed CPU by CPU and kept, sorted by time when a sweep has drained all rings (settle),
 * and folded into the state of its process two sweeps later (complete). Samples may still need what
 * lies in between, since they were taken after the floor. No function here iterates over all
 * processes; a sweep costs as much as it has records.
 */

static const uint64_t memory_default = 64 << 20;

int history_new(const ProcessLimits *limits, History **ret) {
    History *h = calloc(1, sizeof(*h));

    if (!h)
        return -ENOMEM;
    h->strings.budget.limit_bytes =
        limits && limits->memory_bytes ? limits->memory_bytes : memory_default;
    TAILQ_INIT(&h->spaces);
    checks_corrected(h);
    *ret = h;
    return 0;
}

static void history_read_free_processes(History *h) {
    Process *p;

    for (size_t at = 0; (p = hash_table_from(&h->processes, &at));)
        process_free(h, p);
    while (h->oldest)
        entry_unlink(h, h->oldest);
}

History *history_free(History *h) {
    if (!h)
        return NULL;
    spaces_release(h);
    history_read_free_processes(h);
    for (size_t i = 0; i < h->n_fed; i++)
        entry_free(h, h->fed[i]);
    kernel_done(h);
    cgroups_done(h);
    identity_done(h);
    checks_done(h);
    images_forget(h);
    images_done(&h->strings);
    names_done(&h->strings.names, &h->strings.budget);
    hash_table_done(&h->processes, &h->strings.budget);
    hash_table_done(&h->tasks, &h->strings.budget);
    budget_free(&h->strings.budget, h->graves, h->graves_allocated * sizeof(*h->graves));
    budget_free(&h->strings.budget, h->fed, h->fed_allocated * sizeof(*h->fed));
    free(h);
    return NULL;
}

/* The process of the record; 0 or below: none that could be sampled. */
static int32_t history_read_pid_of(const PdRecord *record, const PdBody *body) {
    switch (record->type) {
    case PD_RECORD_FORK:
    case PD_RECORD_EXIT:
        return (int32_t)(body->task.tid == 0 ? 0 : body->task.pid);
    case PD_RECORD_COMM:
        return (int32_t)body->comm.pid;
    case PD_RECORD_MMAP2:
        return (int32_t)body->mmap.pid;
    case PD_RECORD_NAMESPACES:
        return (int32_t)body->namespaces.pid;
    default:
        return 1;
    }
}

static bool history_read_is_kept(const History *h, const PdRecord *record) {
    switch (record->type) {
    case PD_RECORD_FORK:
    case PD_RECORD_EXIT:
    case PD_RECORD_COMM:
    case PD_RECORD_NAMESPACES:
    case PD_RECORD_KSYMBOL:
    case PD_RECORD_BPF_EVENT:
    case PD_RECORD_CGROUP:
    case PD_RECORD_LOST:
        return true;
    case PD_RECORD_MMAP2:
        return h->keeps_data || !(record->misc & PD_MISC_MMAP_DATA);
    default:
        return false;
    }
}

static Entry **history_read_fed_slot(History *h) {
    if (h->n_fed == h->fed_allocated) {
        size_t n = h->fed_allocated ? h->fed_allocated * 2 : 256;
        Entry **fed = budget_resize(&h->strings.budget, h->fed, h->fed_allocated * sizeof(*h->fed),
                                    n * sizeof(*h->fed));

        if (!fed)
            return NULL;
        h->fed = fed;
        h->fed_allocated = n;
    }
    return &h->fed[h->n_fed];
}

/* Keeps only what perf needs to unwind: no writable data, no anonymous memory, no shared files. */
bool mmap_is_needed(const History *h, const PdMmap *mmap) {
    const ProcessBudget *budget = &h->strings.budget;

    return prot_is_data(mmap->prot) && !(mmap->prot & PROT_WRITE) && !(mmap->flags & MAP_SHARED) &&
           (mmap->inode != 0 || mmap->build_id_size > 0) && path_is_file(mmap->filename) &&
           budget->used_bytes < budget->limit_bytes / 2;
}

static bool history_read_is_surplus(const History *h, const PdRecord *record, const PdBody *body) {
    return record->type == PD_RECORD_MMAP2 && (record->misc & PD_MISC_MMAP_DATA) &&
           !mmap_is_needed(h, &body->mmap);
}

static void history_read_keep_mmap(History *h, Entry *e, const PdRecord *record,
                                   const PdMmap *mmap) {
    PdMmap unmarked = *mmap;

    /* The kernel leaves the flag that another recorder's event requested set in our record. */
    if (mmap->build_id_size == 0)
        store_u16(e->record + 4, record->misc & (uint16_t)~PD_MISC_MMAP_BUILD_ID, false);
    if (mmap->build_id_size == 0 && pd_filename_is_marked(mmap->filename)) {
        unmarked.filename = pd_filename_unmark(mmap->filename);
        h->n_marked++;
    }
    e->image = image_of(h, &unmarked);
}

static void history_read_keep(History *h, const PdRecord *record, const PdEvent *event,
                              const PdBody *body) {
    const uint8_t *end = record->data + record->size;
    size_t size = record->size - event->trailer_size;
    Entry *e = entry_new(h, size), **slot = e ? history_read_fed_slot(h) : NULL;

    if (!slot) {
        h->dropped += e != NULL;
        entry_free(h, e);
        if (record->type == PD_RECORD_EXIT)
            exit_fold(h, &body->task, load_u64(end - event->in_trailer.time, false));
        return;
    }
    memcpy(e->record, record->data, size);
    store_u16(e->record + 6, (uint16_t)size, false);
    e->time = load_u64(end - event->in_trailer.time, false);
    if (event->in_trailer.tid >= 0) {
        e->pid = load_u32(end - event->in_trailer.tid, false);
        e->tid = load_u32(end - event->in_trailer.tid + 4, false);
    }
    if (event->in_trailer.cpu >= 0)
        e->cpu = load_u32(end - event->in_trailer.cpu, false);
    if (record->type == PD_RECORD_MMAP2)
        history_read_keep_mmap(h, e, record, &body->mmap);
    history_heard(h, e->time);
    *slot = e;
    h->n_fed++;
}

int history_feed(History *h, const PdRecord *record, const PdEvent *event) {
    PdBody body;
    int r;

    if (!history_read_is_kept(h, record))
        return 0;
    if (record->swap || event->in_trailer.time < 0 || record->size > PD_RECORD_SIZE_MAX ||
        record->size < PD_RECORD_HEADER_SIZE + (uint32_t)event->trailer_size)
        return -EBADMSG;
    r = pd_record_parse(record, event, &body);
    if (r < 0)
        return r;
    if (record->type == PD_RECORD_LOST)
        h->lost += body.lost.lost;
    else if (record->type == PD_RECORD_CGROUP)
        cgroup_learn(h, body.cgroup.id, body.cgroup.path);
    else if (history_read_pid_of(record, &body) > 0 && !history_read_is_surplus(h, record, &body))
        history_read_keep(h, record, event, &body);
    return 0;
}

/* A fork sorts before the child's records of the same nanosecond. */
static int history_read_compare(const void *a, const void *b) {
    const Entry *x = *(Entry *const *)a, *y = *(Entry *const *)b;
    bool x_forks = load_u32(x->record, false) == PD_RECORD_FORK,
         y_forks = load_u32(y->record, false) == PD_RECORD_FORK;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x_forks != y_forks)
        return x_forks ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

void history_keep_data(History *h, bool keep) {
    h->keeps_data = keep;
}

void history_hold_floor(History *h, uint64_t until_ns) {
    h->hold_until_ns = until_ns;
}

int history_settle(History *h, uint64_t start_ns) {
    Entry *hint = NULL;
    size_t n = 0;
    int r = 0;

    spaces_release(h);
    if (start_ns != UINT64_MAX)
        h->sweep_ns = MAX(h->sweep_ns, start_ns);
    if (h->n_fed > 1)
        qsort(h->fed, h->n_fed, sizeof(*h->fed), history_read_compare);
    for (size_t i = 0; i < h->n_fed && h->fed[i]->time <= h->floor_ns; i++)
        h->late++;
    while (n < h->n_fed && h->fed[n]->time <= start_ns)
        hint = entry_settle(h, h->fed[n++], hint);
    h->n_fed -= n;
    if (n > 0)
        memmove(h->fed, h->fed + n, h->n_fed * sizeof(*h->fed));
    if (h->n_fed == 0) {
        h->fed = budget_free(&h->strings.budget, h->fed, h->fed_allocated * sizeof(*h->fed));
        h->fed_allocated = 0;
    }
    h->settled_ns = MAX(h->settled_ns, start_ns);
    h->generation++;
    identity_settle(h, start_ns);
    for (size_t i = 0; i < EMISSIONS_MAX && r == 0; i++)
        if (h->emissions[i])
            r = buffer_error(&h->emissions[i]->pending);
    return r;
}

void history_complete(History *h, uint64_t start_ns) {
    uint64_t floor = MIN(h->previous_ns, identity_floor(h));

    h->previous_ns = MAX(start_ns, h->previous_ns);
    if (floor <= h->floor_ns || start_ns < h->hold_until_ns)
        return;
    h->floor_ns = floor;
    while (h->oldest && h->oldest->time <= floor)
        entry_fold(h, h->oldest);
    graves_expire(h);
    h->generation++;
}

int history_resume(History *h, uint64_t floor_ns) {
    int r = history_settle(h, floor_ns);

    /* Called twice, because the floor is the start of the sweep before the last one. */
    history_complete(h, floor_ns);
    history_complete(h, floor_ns);
    h->resumed_ns = h->floor_ns;
    return r;
}

uint64_t history_birth(const History *h, uint32_t pid, uint32_t *ret_ppid) {
    const Process *p = process_find_born(h, pid, UINT64_MAX);

    if (!p || p->birth_ns == 0 || p->ended_ns != 0)
        return 0;
    *ret_ppid = p->ppid;
    return p->birth_ns;
}

uint64_t history_floor(const History *h) {
    return h->floor_ns ? h->floor_ns : h->first_ns;
}

HistoryCounts history_counts(const History *h) {
    return (HistoryCounts){
        .processes = h->processes.n,
        .threads = h->processes.n + h->tasks.n,
        .images = h->strings.images.n,
        .queued = h->n_entries + h->n_fed,
        .unknown = h->n_unknown,
        .memory_bytes = h->strings.budget.used_bytes + sizeof(*h),
        .inferred = h->inferred,
        .dropped = h->dropped,
        .late = h->late,
        .lost = h->lost,
        .unidentified = h->unidentified,
    };
}
