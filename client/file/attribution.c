/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/attribution.h"

#include <errno.h>

#include "util/hash-index.h"

/*
 * A row for each pair of comm and dso that occurs. Both are interned names of the process table,
 * kept as long as their row, so a pair is two pointers. The row of the previous sample is cached,
 * since it is often the right one.
 */

enum { ROWS_MAX = 65536 };

typedef struct Row {
    const ProcessName *comm, *dso;
    uint64_t samples;
} Row;

struct Attribution {
    Replay *replay;
    Row *rows;
    HashIndex index;
    size_t recent;
    uint64_t uncounted;
    bool boundless_used; /* a sample was in a kernel mapping without bounds */
};

static uint64_t attribution_key(const ProcessName *comm, const ProcessName *dso) {
    return hash_u64((uintptr_t)comm, (uintptr_t)dso);
}

/* The number of the row + 1; 0: there is none. */
static uint32_t attribution_find(const Attribution *a, const ProcessName *comm,
                                 const ProcessName *dso) {
    uint64_t key = attribution_key(comm, dso);
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&a->index, key, &probe)) > 0;)
        if (a->rows[number - 1].comm == comm && a->rows[number - 1].dso == dso)
            return number;
    return 0;
}

static int attribution_add_row(Attribution *a, const ProcessName *comm, const ProcessName *dso) {
    Row *row = hash_index_append(&a->index, attribution_key(comm, dso), &a->rows);

    if (!row)
        return -ENOMEM;
    process_table_keep(comm);
    process_table_keep(dso);
    *row = (Row){.comm = comm, .dso = dso};
    return 0;
}

/* Whether one kernel mapping covers all addresses. */
static bool attribution_is_boundless(const ProcessMaps *maps) {
    const ProcessMapping *first = maps_find(maps, 0), *last = maps_find(maps, UINT64_MAX - 1);

    return first && last && first->image->kernel && last->image->kernel && last->end == UINT64_MAX;
}

/*
 * simpleperf may map the kernel over the whole address space. perf shrinks that mapping to the
 * symbols it finds when the first sample needs them, and they are not those of that kernel.
 */
static const ProcessName *attribution_dso_of(Attribution *a, ProcessTable *table,
                                             const ReplaySample *s) {
    const ProcessMapping *mapping;
    const ProcessName *dso =
        process_table_dso(table, s->pid, s->tid, s->cpumode, s->ip, &mapping).name;

    if (!mapping || !mapping->image->kernel ||
        !attribution_is_boundless(process_table_kernel_maps(table)))
        return dso;
    if (a->boundless_used)
        return process_table_dso(table, s->pid, s->tid, PD_MISC_CPUMODE_UNKNOWN, s->ip, NULL).name;
    a->boundless_used = true;
    return dso;
}

static int attribution_on_sample(ProcessTable *table, const ReplaySample *sample, void *arg) {
    Attribution *a = arg;
    const ProcessName *comm = process_table_comm(table, sample->pid, sample->tid).name,
                      *dso = attribution_dso_of(a, table, sample);
    int r;

    if (a->recent >= a->index.n || a->rows[a->recent].comm != comm ||
        a->rows[a->recent].dso != dso) {
        uint32_t row = attribution_find(a, comm, dso);

        if (row == 0) {
            if (a->index.n >= ROWS_MAX) {
                a->uncounted++;
                return 0;
            }
            r = attribution_add_row(a, comm, dso);
            if (r < 0)
                return r;
            row = (uint32_t)a->index.n;
        }
        a->recent = row - 1;
    }
    a->rows[a->recent].samples++;
    return 0;
}

int attribution_new(PdReader *reader, Attribution **ret) {
    static const ProcessLimits limits = {.forget_exited = true};
    _cleanup_(attribution_freep) Attribution *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    r = replay_new(reader, &limits, attribution_on_sample, a, &a->replay);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(a);
    return 0;
}

Attribution *attribution_free(Attribution *a) {
    if (!a)
        return NULL;
    for (size_t i = 0; i < a->index.n; i++) {
        process_table_forget(replay_table(a->replay), a->rows[i].comm);
        process_table_forget(replay_table(a->replay), a->rows[i].dso);
    }
    replay_free(a->replay);
    free(a->rows);
    hash_index_done(&a->index);
    free(a);
    return NULL;
}

int attribution_add(Attribution *a, const PdRecord *record, const PdStamp *stamp) {
    return replay_add(a->replay, record, stamp);
}

int attribution_finish(Attribution *a) {
    return replay_finish(a->replay);
}

static int attribution_compare_names(const ProcessName *a, const ProcessName *b) {
    int d = memcmp(a->text, b->text, MIN(a->size, b->size));

    return d != 0 ? d : (a->size > b->size) - (a->size < b->size);
}

static int attribution_by_samples(const void *x, const void *y) {
    const Row *a = x, *b = y;
    int d = a->samples < b->samples ? 1 : -(a->samples > b->samples);

    if (d == 0)
        d = attribution_compare_names(a->comm, b->comm);
    return d != 0 ? d : attribution_compare_names(a->dso, b->dso);
}

static int attribution_by_comm(const void *x, const void *y) {
    const Row *a = x, *b = y;

    return (a->comm > b->comm) - (a->comm < b->comm);
}

/* Merges rows of the same comm; returns how many are left. */
static size_t attribution_fold_dsos(Row *rows, size_t n) {
    size_t to = 0;

    qsort(rows, n, sizeof(*rows), attribution_by_comm);
    for (size_t i = 0; i < n; i++)
        if (to > 0 && rows[to - 1].comm == rows[i].comm)
            rows[to - 1].samples += rows[i].samples;
        else
            rows[to++] = rows[i];
    return to;
}

static int attribution_top(const Attribution *a, bool comms_only, Share *ret, size_t n) {
    _cleanup_free_ Row *rows = NULL;
    size_t n_rows = a->index.n;

    if (n_rows == 0)
        return 0;
    rows = reallocarray(NULL, n_rows, sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    memcpy(rows, a->rows, n_rows * sizeof(*rows));
    if (comms_only)
        n_rows = attribution_fold_dsos(rows, n_rows);
    qsort(rows, n_rows, sizeof(*rows), attribution_by_samples);
    n = MIN(n, n_rows);
    for (size_t i = 0; i < n; i++)
        ret[i] = (Share){
            .comm = name_bytes(rows[i].comm),
            .dso = comms_only ? (Bytes){} : name_bytes(rows[i].dso),
            .samples = rows[i].samples,
        };
    return (int)n;
}

int attribution_top_comms(const Attribution *a, Share *ret, size_t n) {
    return attribution_top(a, true, ret, n);
}

int attribution_top_dsos(const Attribution *a, Share *ret, size_t n) {
    return attribution_top(a, false, ret, n);
}

uint64_t attribution_uncounted(const Attribution *a) {
    return a->uncounted;
}
