/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/data-map.h"

#include "capture/follow/watch-ring.h"
#include "capture/open/open-ring.h"

/*
 * Data mappings. perf unwinds the stack in a sample with the unwind tables of an ELF file, at the
 * address where the process has them mapped beside its code, and takes the lowest of its mappings
 * as its base. So while a session samples stacks, an event records mappings that are not executed;
 * no other session needs them. It has rings of its own: a program that maps, unmaps or protects
 * memory in a loop fills a ring within milliseconds, and this must not cost anybody a fork, a name
 * or a mapping of code.
 *
 * The main thread opens these rings with the first session that samples stacks and closes them with
 * the last one. Through the keeper 256 of them took 0.12 s to open on a busy host, and 0.01 s to
 * close.
 */

/* A CPU without such a ring is no failure: most stacks need only mappings from before. */
void data_open_missing(Sampler *sampler) {
    for (size_t i = 0; sampler->records_data && i < sampler->side_band.n; i++) {
        unsigned cpu = sampler->side_band.rings[i]->cpu;

        if (!ring_set_find(&sampler->data, cpu) && open_ring(&sampler->data, cpu) > 0)
            (void)watch_ring(ring_set_find(&sampler->data, cpu));
    }
}

static void data_map_begin(Sampler *sampler) {
    sampler->records_data = true;
    data_open_missing(sampler);
    if (sampler_follows_processes(sampler) && sampler->on_follow)
        (void)sampler->on_follow(sampler->follow_userdata);
}

void data_update(Sampler *sampler) {
    bool wanted = false;

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        wanted |= plan_takes_stacks(&s->plan);
    if (wanted && !sampler->records_data)
        data_map_begin(sampler);
    if (wanted || sampler->n_held > 0)
        return;
    sampler->records_data = false;
    ring_set_done(&sampler->data, true);
}
