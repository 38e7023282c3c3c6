/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "capture/sampler/limit.h"
#include "capture/sampler/sampler-private.h"

/*
 * Data mappings. Who unwinds the stack in a sample looks up the unwind tables of an ELF file where
 * the process has them mapped, beside its code, and takes the lowest of its mappings for its base.
 * So while a session samples stacks an event of its own tells of mappings that are not executed;
 * for all others they would be a burden. The kernel lets it tell of code as well, which is passed
 * over behind the same from the side-band event.
 */

PdAttr data_attr(const Sampler *sampler) {
    PdAttr attr = sampler->side_band_attr;

    attr.flags = (attr.flags & ~SIDE_BAND_TELLS) | PD_ATTR_MMAP2 | PD_ATTR_MMAP_DATA;
    return attr;
}

bool sampler_takes_stacks(const SamplerSession *session) {
    for (size_t i = 0; i < session->plan.n; i++)
        if (session->plan.events[i].attr.sample_type & PD_SAMPLE_STACK_USER)
            return true;
    return false;
}

bool sampler_tells_data(const Sampler *sampler) {
    return sampler->tells_data;
}

static bool data_map_is_open_for(const CpuRing *ring, int32_t tid) {
    for (size_t i = 0; i < ring->n_counters; i++)
        if (ring->counters[i].event == DATA_EVENT && ring->counters[i].tid == tid)
            return true;
    return false;
}

int data_open(CpuRing *ring, int32_t tid) {
    return data_map_is_open_for(ring, tid)
               ? 0
               : open_beside(ring, data_attr(ring->sampler), tid, DATA_EVENT);
}

/* For each thread that is followed, or for the CPU as a whole. A thread may be gone by now. */
static int data_map_open_on(CpuRing *ring) {
    size_t n = ring->n_counters;

    for (size_t i = 0; i < n; i++) {
        int r =
            ring->counters[i].event == SIDE_BAND_EVENT ? data_open(ring, ring->counters[i].tid) : 0;

        if (r < 0 && r != -ESRCH && r != -ENODEV)
            return r;
    }
    return 0;
}

static void data_map_close_on(CpuRing *ring) {
    for (size_t i = ring->n_counters; i-- > 1;)
        if (ring->counters[i].event == DATA_EVENT)
            counter_close(ring, i);
}

/* Stacks are still worth more than nothing. */
static void data_map_open_all(Sampler *sampler) {
    sampler->tells_data = true;
    for (size_t i = 0; i < sampler->side_band.n; i++) {
        CpuRing *ring = sampler->side_band.rings[i];
        int r = data_map_open_on(ring);

        if (r < 0)
            (void)limit_log_open_failure(r, NULL, "dummy", ring->cpu);
    }
}

void data_update(Sampler *sampler) {
    bool wanted = false;

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        wanted |= sampler_takes_stacks(s);
    if (wanted && !sampler->tells_data)
        data_map_open_all(sampler);
    if (wanted || sampler->n_held > 0)
        return;
    sampler->tells_data = false;
    for (size_t i = 0; i < sampler->side_band.n; i++)
        data_map_close_on(sampler->side_band.rings[i]);
}
