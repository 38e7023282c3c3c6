/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

typedef struct SamplerProcesses {
    const uint32_t *pids;      /* the running processes; their side-band up to now was handed out */
    const uint64_t *starts_ns; /* when each began, by CLOCK_BOOTTIME; 0: not known now */
    size_t n;
    /* When side-band recorded its fork, and from which process; 0: it did not. */
    uint64_t (*forked_ns)(void *userdata, uint32_t pid, uint32_t *ret_ppid);
    /* Called when its side-band has begun. */
    int (*on_followed)(void *userdata, uint32_t pid);
    void *userdata;
} SamplerProcesses;

/* Opens events of the processes that are not followed yet, and closes events of those that are
 * gone. Samples of a process begin with sampler_release(). */
int sampler_follow(Sampler *sampler, const SamplerProcesses *running);
/* Begins its samples: its state is known from /proc, so they will have names. */
void sampler_release(Sampler *sampler, uint32_t pid);
