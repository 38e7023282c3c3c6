/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "capture/sampler/sampler-private.h"
#include "perfdata/record/record.h"

/*
 * Data mappings. perf unwinds the stack in a sample by the unwind tables of an ELF file, where the
 * process has them mapped beside its code, and takes the lowest of its mappings as its base. So
 * while a session samples stacks, an event records mappings that are not executed; no other session
 * needs them. It has rings of its own: a program that maps, unmaps or protects memory in a loop
 * fills a ring within milliseconds, and must not cost anybody a fork, a name or a mapping of code.
 *
 * The kernel lets the event record mappings of code as well. They are in the ring of side-band
 * already, and are left out here.
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

/* A CPU without is no failure: most stacks need only what ran before. */
void data_open_missing(Sampler *sampler) {
    for (size_t i = 0; sampler->tells_data && i < sampler->side_band.n; i++) {
        unsigned cpu = sampler->side_band.rings[i]->cpu;

        if (!ring_set_find(&sampler->data, cpu) && open_shared(sampler, &sampler->data, cpu) > 0)
            (void)watch_ring(ring_set_find(&sampler->data, cpu));
    }
}

static void data_map_begin(Sampler *sampler) {
    sampler->tells_data = true;
    data_open_missing(sampler);
    if (sampler->is_own && sampler->on_follow)
        (void)sampler->on_follow(sampler->follow_userdata);
}

void data_update(Sampler *sampler) {
    bool wanted = false;

    for (const SamplerSession *s = sampler->sessions; s; s = s->next)
        wanted |= sampler_takes_stacks(s);
    if (wanted && !sampler->tells_data)
        data_map_begin(sampler);
    if (wanted || sampler->n_held > 0)
        return;
    sampler->tells_data = false;
    ring_set_done(&sampler->data, true);
}

static bool data_map_is_data(const PdRecord *record) {
    return record->type == PD_RECORD_MMAP2 && (record->misc & PD_MISC_MMAP_DATA);
}

static int data_map_hand_out_run(const CpuRing *ring, Bytes records, const SamplerSinks *sinks) {
    Batch batch = {.cpu = ring->cpu, .records = records};

    return records.size > 0 ? sinks->on_batch(sinks->userdata, &batch) : 0;
}

int data_hand_out(const CpuRing *ring, Bytes records, const SamplerSinks *sinks) {
    size_t from = 0, at = 0;
    int r = 0;

    while (r == 0 && at < records.size) {
        PdRecord record = pd_record_at(records.data + at, false);

        if (!data_map_is_data(&record)) {
            r = data_map_hand_out_run(ring, (Bytes){records.data + from, at - from}, sinks);
            from = at + record.size;
        }
        at += record.size;
    }
    return r == 0 ? data_map_hand_out_run(ring, (Bytes){records.data + from, at - from}, sinks) : r;
}
