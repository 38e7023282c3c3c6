/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/watch-ring.h"

#include <poll.h>

/*
 * Rings that fill wake the loop. The loop watches one descriptor of each ring, and the next one
 * when the thread of the first is gone.
 */

enum { WORTH_SAMPLES = 8, WORTH_SIDE_BAND = 16 };

/*
 * A sweep empties all rings, so when a ring wakes the loop, another ring's sweep may just have
 * taken most of its records; a new sweep is not worth it then, and twice as many CPUs do not cause
 * twice as many sweeps. The ring wakes the loop again in time.
 */
static bool watch_is_worth_a_sweep(const CpuRing *ring) {
    unsigned part = ring->set->kind == TAG_SIDE_BAND ? WORTH_SIDE_BAND : WORTH_SAMPLES;

    return ring_head(&ring->ring) - ring->taken >= ring->ring.size / part;
}

/* A descriptor hangs up when its thread is gone, and would then be readable for ever; the ring
 * lives on for the other events that write to it, whose descriptors wake the loop as well. */
static int watch_on_ring(void *userdata) {
    CpuRing *ring = userdata;
    Sampler *sampler = ring->set->sampler;
    struct pollfd hung = {.fd = ring->counters[ring->watched].fd};
    int r = 0;

    if (poll(&hung, 1, 0) > 0 && (hung.revents & (POLLHUP | POLLERR))) {
        ring->source = loop_source_free(ring->source);
        ring->watched++;
        r = watch_ring(ring);
        if (r == 0 && !ring->source && sampler->options.on_ended)
            sampler->options.on_ended(sampler->options.userdata);
    }
    return r < 0 || !watch_is_worth_a_sweep(ring) ? r : sampler->on_full(sampler->watch_userdata);
}

int watch_ring(CpuRing *ring) {
    Sampler *sampler = ring->set->sampler;

    if (!sampler->loop || ring->source || ring->watched >= ring->n_counters)
        return 0;
    return loop_add_readable(sampler->loop, ring->counters[ring->watched].fd, watch_on_ring, ring,
                             &ring->source);
}
