/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "capture/open/followed.h"
#include "capture/open/open-ring.h"
#include "capture/open/target.h"
#include "perfdata/record/record.h"
#include "util/clock.h"

/*
 * Events of followed processes. Each running thread has its events on every CPU; they write into
 * the CPU's ring and are inherited by what the thread starts. The rings belong to the keeper's own
 * events, which come first and stay whichever processes come and go.
 *
 * Recordings know an event by the ids of the keeper's counters, so that nothing changes in them
 * when processes come and go. Records of other counters get that id when they are taken.
 */

#define ADOPTED_NS (10 * NS_PER_SECOND) /* the age of forks that rings may still hold */

static int process_target_compare_ids(const void *a, const void *b) {
    const Counter *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}

static int process_target_adopt(RingSet *set) {
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    Followers *all = followed_make(set);

    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < set->n; i++) {
        CpuRing *ring = set->rings[i];

        /* Sort by id: the counter that brought the ring was opened first. */
        qsort(ring->counters, ring->n_counters, sizeof(*ring->counters),
              process_target_compare_ids);
    }
    all->is_adopted = true;
    all->since_ns = 1;
    set->sampler->unsure_before_ns = now_ns - MIN(now_ns, ADOPTED_NS);
    return 0;
}

static Counter *process_target_find_id(const CpuRing *ring, uint64_t id) {
    Counter key = {.id = id};

    return bsearch(&key, ring->counters, ring->n_counters, sizeof(key), process_target_compare_ids);
}

static Counter *process_target_first_of(const CpuRing *ring, unsigned event) {
    int32_t keeper = ring->counters[0].tid;

    for (size_t i = 0; i < ring->n_counters && ring->counters[i].tid == keeper; i++)
        if (ring->counters[i].event == event)
            return &ring->counters[i];
    return &ring->counters[0];
}

static void process_target_unify_id(const CpuRing *ring, uint8_t *at) {
    const Counter *counter = process_target_find_id(ring, load_u64(at, false));

    if (counter)
        store_u64(at, process_target_first_of(ring, counter->event)->id, false);
}

static void process_target_unify_record(const CpuRing *ring, uint8_t *data,
                                        const PdRecord *record) {
    bool throttles = record->type == PD_RECORD_THROTTLE || record->type == PD_RECORD_UNTHROTTLE;

    if (record->size < PD_RECORD_HEADER_SIZE + sizeof(uint64_t))
        return;
    if (record->type == PD_RECORD_LOST || record->type == PD_RECORD_SAMPLE)
        process_target_unify_id(ring, data + PD_RECORD_HEADER_SIZE);
    /* The ids follow the time. */
    if (throttles && record->size >= PD_RECORD_HEADER_SIZE + 4 * sizeof(uint64_t))
        for (size_t i = 1; i <= 2; i++)
            process_target_unify_id(ring, data + PD_RECORD_HEADER_SIZE + i * sizeof(uint64_t));
    if (record->type != PD_RECORD_SAMPLE)
        process_target_unify_id(ring, data + record->size - sizeof(uint64_t));
}

/* Changes a copy, unless the records are one already: the ring itself is read-only. */
static int process_target_unify(const CpuRing *ring, Bytes *records) {
    const Scratch *scratch = &ring->set->sampler->scratch;

    if (records->size > scratch->size)
        return -EMSGSIZE;
    if (records->data != scratch->data)
        memcpy(scratch->data, records->data, records->size);
    records->data = scratch->data;
    for (size_t at = 0; at < records->size;) {
        PdRecord record = pd_record_at(scratch->data + at, false);

        process_target_unify_record(ring, scratch->data + at, &record);
        at += record.size;
    }
    return 0;
}

static Counter *process_target_reporter(const CpuRing *ring, Counter *counter) {
    return process_target_first_of(ring, counter->event);
}

/* Opens the other threads of followed processes on a new ring. */
static int process_target_open_others(CpuRing *ring) {
    const Followers *all = followed_of(ring->set);
    int r = 0;

    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; r >= 0 && k < all->items[i].n_tids; k++)
            if (all->items[i].tids[k] != ring->set->sampler->options.keeper_pid)
                r = open_target(ring, (int32_t)all->items[i].tids[k]);
    return MIN(r, 0);
}

/* The keeper is followed first, and its event brings the ring. */
static int process_target_open(CpuRing *ring) {
    Followed keeper = {.pid = ring->set->sampler->options.keeper_pid,
                       .begin_ns = clock_monotonic_ns()};
    int r;

    if (!followed_find(ring->set, keeper.pid) && !followed_add(ring->set, &keeper))
        return -ENOMEM;
    r = open_target(ring, (int32_t)keeper.pid);
    return r == 0 && ring->n_counters > 0 ? process_target_open_others(ring) : r;
}

const TargetOps process_target = {.inherits = true,
                                  .open = process_target_open,
                                  .adopt = process_target_adopt,
                                  .reporter = process_target_reporter,
                                  .unify = process_target_unify,
                                  .done = followed_done};
