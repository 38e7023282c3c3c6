/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cpu-gap.h"

#include <errno.h>
#include <stdio.h>

#include "capture/cpu-list.h"

/*
 * A CPU that goes is told at once, as a gap that begins; when it comes back the whole gap is told,
 * in the segment of that time. CPUs that the session never had are none of its gaps.
 */

struct CpuGaps {
    struct {
        bool had, away;
        uint64_t since_ns;
    } cpus[CPU_LIST_MAX];
};

int cpu_gaps_new(const SamplerSession *sampler, CpuGaps **ret) {
    CpuGaps *gaps = calloc(1, sizeof(*gaps));

    if (!gaps)
        return -ENOMEM;
    for (unsigned cpu = 0; cpu < CPU_LIST_MAX; cpu++)
        gaps->cpus[cpu].had = sampler_has_cpu(sampler, cpu);
    *ret = gaps;
    return 0;
}

CpuGaps *cpu_gaps_free(CpuGaps *gaps) {
    free(gaps);
    return NULL;
}

int cpu_gaps_update(CpuGaps *gaps, const SamplerSession *sampler, uint64_t now_ns,
                    int (*fn)(void *userdata, const SegmentFacts *facts), void *userdata) {
    int r = 0;

    for (unsigned cpu = 0; r == 0 && cpu < CPU_LIST_MAX; cpu++) {
        bool was_away = gaps->cpus[cpu].away;
        /* Without its control group a session has no CPU, and they are all there. */
        bool has = sampler_is_waiting(sampler) ? !was_away : sampler_has_cpu(sampler, cpu);
        char what[64];

        gaps->cpus[cpu].had |= has;
        gaps->cpus[cpu].away = gaps->cpus[cpu].had && !has;
        if (gaps->cpus[cpu].away == was_away)
            continue;
        if (!was_away)
            gaps->cpus[cpu].since_ns = now_ns;
        snprintf(what, sizeof(what), was_away ? "CPU %u was offline" : "CPU %u went offline", cpu);
        r = fn(userdata, &(SegmentFacts){.gap = what,
                                         .gap_from_ns = gaps->cpus[cpu].since_ns,
                                         .gap_to_ns = now_ns});
    }
    return r;
}
