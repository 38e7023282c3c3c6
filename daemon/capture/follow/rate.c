/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/follow/rate.h"

#include <inttypes.h>

#include "capture/plan/degraded-reason.h"
#include "capture/plan/limit.h"
#include "util/log.h"

/* The kernel's limit on rates, which it lowers by itself when interrupts take too long. */

/* Logs that the kernel's limit changed: sessions above it are throttled from now on. */
void rate_watch(Sampler *sampler) {
    uint64_t max = limit_sample_rate(), before = sampler->max_rate_hz;

    if (max == 0 || max == before)
        return;
    sampler->max_rate_hz = max;
    for (SamplerSession *s = sampler->sessions; s; s = s->next) {
        s->degraded &= ~(unsigned)DEGRADED_RATE_LOWERED;
        s->degraded |= s->plan.degraded & DEGRADED_RATE_LOWERED;
        if (s->plan.hz <= max)
            continue;
        s->degraded |= DEGRADED_RATE_LOWERED;
        log_warning(0,
                    "The kernel allows no more than %" PRIu64
                    " samples a second now and throttles session '%s', which takes %" PRIu64
                    "; lower Frequency=, or raise kernel.perf_event_max_sample_rate or "
                    "kernel.perf_cpu_time_max_percent",
                    max, s->config.name, s->plan.hz);
    }
}
