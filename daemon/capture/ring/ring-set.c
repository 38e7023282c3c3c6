/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/ring/ring-set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "util/array.h"

/*
 * The rings of a session, one for each CPU, in the order of CPUs, and the counters that write into
 * them. A ring keeps its address while it lives, because the loop's callbacks have it.
 */

CpuRing *ring_set_find(const RingSet *set, unsigned cpu) {
    for (size_t i = 0; i < set->n; i++)
        if (set->rings[i]->cpu == cpu)
            return set->rings[i];
    return NULL;
}

int ring_set_add(RingSet *set, unsigned cpu, CpuRing **ret) {
    _cleanup_free_ CpuRing *ring = calloc(1, sizeof(*ring));
    size_t i;

    if (!ring || !array_grow(&set->rings, &set->n))
        return -ENOMEM;
    *ring = (CpuRing){.set = set, .cpu = cpu};
    for (i = set->n - 1; i > 0 && set->rings[i - 1]->cpu > cpu; i--)
        set->rings[i] = set->rings[i - 1];
    *ret = set->rings[i] = ring;
    ring = NULL;
    return 0;
}

/* Counters are freed in reverse order: followers before the owner of their ring. */
static void ring_free(CpuRing *ring, bool at_keeper) {
    loop_source_free(ring->source);
    ring_done(&ring->ring);
    for (size_t i = ring->n_counters; i-- > 0;) {
        closep(&ring->counters[i].fd);
        if (at_keeper)
            (void)keeper_close_event(ring->set->keeper, ring->counters[i].slot);
    }
    free(ring->counters);
    free(ring);
}

/* The first counter of the ring reports the losses of this one. */
void counter_close(CpuRing *ring, size_t i) {
    Counter *counter = &ring->counters[i];

    ring->counters[0].lost += counter->lost - counter->reported;
    closep(&counter->fd);
    (void)keeper_close_event(ring->set->keeper, counter->slot);
    memmove(counter, counter + 1, (ring->n_counters - i - 1) * sizeof(*counter));
    ring->n_counters--;
}

void ring_set_remove(RingSet *set, CpuRing *ring, bool at_keeper) {
    size_t i = 0;

    while (set->rings[i] != ring)
        i++;
    memmove(&set->rings[i], &set->rings[i + 1], (set->n - i - 1) * sizeof(*set->rings));
    set->n--;
    ring_free(ring, at_keeper);
}

void ring_set_done(RingSet *set, bool at_keeper) {
    for (size_t i = 0; i < set->n; i++)
        ring_free(set->rings[i], at_keeper);
    free(set->rings);
    set->rings = NULL;
    set->n = 0;
    if (set->ops->done)
        set->ops->done(set);
}

uint64_t ring_set_counters(const RingSet *set) {
    uint64_t n = 0;

    for (size_t i = 0; i < set->n; i++)
        n += set->rings[i]->n_counters;
    return n;
}

uint64_t ring_set_bytes(const RingSet *set) {
    uint64_t bytes = 0;

    for (size_t i = 0; i < set->n; i++)
        bytes += set->rings[i]->ring.size;
    return bytes;
}

int counter_control(const Counter *counter, unsigned long request) {
    return ioctl(counter->fd, request, 0) < 0 ? -errno : 0;
}
