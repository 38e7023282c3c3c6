/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The owner of a sampler passes these to it and gets these from it. */

#include "capture/ring/loss.h"
#include "keeper/request/keeper-client.h"
#include "util/buffer.h"

typedef struct SamplerOptions {
    Keeper *keeper;
    uint64_t buffer_total_bytes; /* of all sessions' rings */
    uint64_t max_frequency_hz;   /* 0: only the kernel's limit */
    uint64_t arena_max_bytes;    /* of a session's arena; 0: the usual */
    /* The keeper's pid: if whole CPUs are refused, the keeper and other processes of its user are
     * recorded. 0: nothing is. */
    uint32_t keeper_pid;
    bool locking_is_limited; /* the kernel counts rings against RLIMIT_MEMLOCK */
    /* Calls work(job) on a thread, one job after the other, then done(job) on the main thread, also
     * for a job that the end of profd prevents. A negative errno: it calls neither. NULL: there is
     * no such thread. */
    int (*aside)(void *userdata, void (*work)(void *job), void (*done)(void *job), void *job);
    void (*on_opened)(void *userdata); /* sampler_opening_end() has an answer */
    void (*on_ended)(void *userdata);  /* sampler_has_ended() may be true now; may be NULL */
    void *userdata;
} SamplerOptions;

typedef struct Batch {
    SamplerSession *session; /* NULL: side-band */
    unsigned cpu;
    bool is_first; /* no record before it is still in the ring */
    Bytes records; /* whole, host order; valid during the call */
} Batch;

/* 0, or a negative errno. 1 for a batch with is_first: the records are safe, so their space in the
 * ring is free. */
typedef int (*SamplerSink)(void *userdata, const Batch *batch);

typedef struct SamplerSinks {
    SamplerSink on_batch;
    /* start_ns: when the heads were noted */
    int (*on_side_band_end)(void *userdata, uint64_t start_ns);
    /* Side-band runs on a CPU that came: what happened there before is only in /proc. Called before
     * sessions sample there. NULL: not needed. */
    int (*on_side_band_open)(void *userdata);
    void *userdata;
} SamplerSinks;

/* Whether whole CPUs are refused: then only processes of the keeper's user are recorded, those that
 * sampler_follow() gets and all that they start later. The owner lists the running processes from
 * time to time. */
bool sampler_follows_processes(const Sampler *sampler);
