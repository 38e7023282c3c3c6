/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/open-ring.h"
#include "capture/open/target.h"

/* Events of a CPU, a group or a thread: they end with their CPU, and records have their ids. */

static int cpu_target_open(CpuRing *ring) {
    const SamplerSession *session = ring->set->session;
    int r = 0;

    if (!session || !plan_has_threads(&session->config))
        return open_target(ring, -1);
    for (size_t i = 0; r == 0 && i < session->n_tids; i++)
        r = open_target(ring, (int32_t)session->tids[i]);
    return r;
}

static Counter *cpu_target_reporter(const CpuRing *ring _unused_, Counter *counter) {
    return counter;
}

const TargetOps cpu_target = {.open = cpu_target_open, .reporter = cpu_target_reporter};
