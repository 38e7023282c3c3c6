/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the owner of a sampler gives and gets. */

#include "capture/ring/loss.h"
#include "keeper/request/keeper-client.h"
#include "util/buffer.h"

typedef struct SamplerOptions {
    Keeper *keeper;
    uint64_t buffer_total_bytes; /* of all sessions' rings */
    uint64_t max_frequency_hz;   /* 0: only the kernel's limit */
    /* The keeper: where whole CPUs are refused, it and what else its user runs are recorded. 0:
     * then nothing is. */
    uint32_t keeper_pid;
    /* Called every few milliseconds while the keeper is waited for, where
     * sampler_sweep_while_waiting() asks for that: the sessions may be swept. NULL: they wait. */
    void (*on_wait)(void *userdata);
    /* Does work(job) on a thread, one job after the other, and then done(job) on the main one, also
     * for a job that the end of profd comes before. A negative errno: neither. NULL: there is no
     * such thread. */
    int (*aside)(void *userdata, void (*work)(void *job), void (*done)(void *job), void *job);
    void (*on_opened)(void *userdata); /* sampler_opening_end() has an answer */
    void (*on_ended)(void *userdata);  /* sampler_has_ended() may say so now; may be NULL */
    void *userdata;
} SamplerOptions;

typedef struct Batch {
    SamplerSession *session; /* NULL: side-band */
    unsigned cpu;
    Bytes records; /* whole, host order; valid during the call */
} Batch;

typedef int (*SamplerSink)(void *userdata, const Batch *batch);

typedef struct SamplerSinks {
    SamplerSink on_batch;
    int (*on_side_band_end)(void *userdata, uint64_t start_ns); /* when the heads were noted */
    void *userdata;
} SamplerSinks;

/* Where whole CPUs are refused: only processes of the keeper's user are recorded, those that
 * sampler_follow() was given and all that they start from then on. The owner looks at who runs from
 * time to time. */
bool sampler_follows_processes(const Sampler *sampler);
