/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

typedef struct SamplerProcesses {
    const uint32_t *pids;      /* who runs; side-band up to then was handed out */
    const uint64_t *starts_ns; /* since when, by CLOCK_BOOTTIME */
    size_t n;
    /* When side-band told of its fork, and by whom; 0: it did not. */
    uint64_t (*forked_ns)(void *userdata, uint32_t pid, uint32_t *ret_ppid);
    /* Its side-band runs now. */
    int (*on_followed)(void *userdata, uint32_t pid);
    void *userdata;
} SamplerProcesses;

/* Opens events of those that nobody followed yet, and closes what is of no use any more. Samples of
 * a process begin with sampler_release(). */
int sampler_follow(Sampler *sampler, const SamplerProcesses *running);
/* Its state is known from /proc, so its samples will have names. */
void sampler_release(Sampler *sampler, uint32_t pid);
