/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events and rings. On every online CPU a side-band event in a ring of its own, shared by all
 * sessions, another one for data mappings while a session samples stacks, and for each session a
 * ring of samples. Records leave in Batches, whole, in the order
 * of a sweep, to a sink that the owner gives; the sampler does not know where they go.
 *
 * What was taken from a session's ring stays in it until the owner says that it is written: a
 * recorder that dies loses nothing that the ring still holds, and the next one takes it again.
 * Of side-band the newer half of each ring stays, so that the next one hears of processes that were
 * not written yet and may be gone when it reads /proc.
 */

#include "capture/sampler/check.h"
#include "capture/sampler/plan-note.h"
#include "config/config.h"
#include "keeper/request/keeper-client.h"
#include "loop/loop.h"
#include "perfdata/event/event.h"

typedef struct Sampler Sampler;
typedef struct SamplerSession SamplerSession;

typedef struct SamplerOptions {
    Keeper *keeper;
    uint64_t buffer_total_bytes; /* of all sessions' rings */
    uint64_t max_frequency_hz;   /* 0: only the kernel's limit */
    /* The keeper: where whole CPUs are refused, it and what else its user runs are recorded. 0:
     * then nothing is. */
    uint32_t own_pid;
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

/* Why a session or the whole is less than asked for; a set. */
typedef enum Degraded {
    DEGRADED_LOST = 1 << 0,
    DEGRADED_THROTTLED = 1 << 1,
    DEGRADED_DISK_FULL = 1 << 2,
    DEGRADED_WRITER_BLOCKED = 1 << 3,
    DEGRADED_PARTIAL_CPUS = 1 << 4,
    DEGRADED_FALLBACK_EVENT = 1 << 5,
    DEGRADED_SHORT_REACH = 1 << 6,
    DEGRADED_CONFIG = 1 << 7,
    DEGRADED_RATE_LOWERED = 1 << 8,
    DEGRADED_SMALL_RINGS = 1 << 9,
    DEGRADED_NO_KERNEL = 1 << 10,
    DEGRADED_OWN_PROCESSES = 1 << 11,
    DEGRADED_PARTIAL_PROCESSES = 1 << 12,
    DEGRADED_SMALL_MEMORY = 1 << 13,
    DEGRADED_MISSING_EVENTS = 1 << 14,
    DEGRADED_FALLBACK_CALL_GRAPH = 1 << 15,
    DEGRADED_ABSENT_GROUP = 1 << 16,
    /* A session of these records nothing, and no sampler knows of it. */
    DEGRADED_STOPPED = 1 << 17,
    DEGRADED_PAUSED = 1 << 18,
    DEGRADED_FAILED = 1 << 19,
    DEGRADED_LATE_START = 1 << 20,
    DEGRADED_NO_CPUS = 1 << 21,
    DEGRADED_SCAN_STUCK = 1 << 22,
    DEGRADED_NO_BUILD_IDS = 1 << 23,
} Degraded;

/* For a session that this sampler may get, instead of `old` (NULL: beside all others). */
CheckOptions sampler_check_options(const Sampler *sampler, const SamplerSession *old);

/*
 * Opens side-band on all online CPUs, or takes over what the keeper holds. Events that belong to
 * no session of the new recorder are closed by sampler_forget_rest().
 */
int sampler_new(const SamplerOptions *options, Sampler **ret);
Sampler *sampler_free(Sampler *sampler);
DEFINE_CLEANUP(Sampler *, sampler_free);

/*
 * Settles and opens the events of a session on its CPUs, disabled; takes over those that the
 * keeper holds for the same session (same name, attrs and CPUs), which may be sampling.
 * Failures are logged in one sentence that names the remedy; -ESRCH … as they came.
 */
int sampler_add(Sampler *sampler, const SessionConfig *config, SamplerSession **ret);
/*
 * The same while the loop runs: what has to wait for the keeper is done on a thread, and the
 * session is in sweeps from when sampler_opening_end() returned it. One at a time. `quiet`: what
 * fails is not logged.
 */
typedef struct SamplerOpening SamplerOpening;
int sampler_opening_begin(Sampler *sampler, const SessionConfig *config, bool quiet,
                          SamplerOpening **ret);
/* 1: it is open, in *ret; 0: not yet; a negative errno: it cannot be, with the sentence of the log
 * in `error`. Unless it is 0, `opening` is gone. Between two sweeps. */
int sampler_opening_end(SamplerOpening *opening, SamplerSession **ret, char *error, size_t size);
/* Nobody wants it any more; accepts and returns NULL. */
SamplerOpening *sampler_opening_cancel(SamplerOpening *opening);
/* Tries, as above and without a ring, whether a session may have more of its events by now. 1: it
 * may, opened anew; 0: not known yet; a negative errno: it may not. */
int sampler_trial_begin(const SamplerSession *session, SamplerOpening **ret);
int sampler_trial_end(SamplerOpening *opening, const SamplerSession *session);
/* Closes its events, here and, on that thread, at the keeper; accepts and returns NULL. */
SamplerSession *sampler_remove(SamplerSession *session);
void sampler_forget_rest(Sampler *sampler);
/* From now on, or no more: see on_wait. */
void sampler_sweep_while_waiting(Sampler *sampler, bool sweep);
int sampler_enable(SamplerSession *session);
int sampler_disable(SamplerSession *session);

void sampler_set_userdata(SamplerSession *session, void *userdata);
void *sampler_userdata(const SamplerSession *session);
/* The session's rings were another recorder's before, and may hold what it had written already. */
bool sampler_was_taken_over(const SamplerSession *session);

/* What the session's files hold: its sampling events in order, then the side-band event; ids in
 * CPU order. They change, and sampler_generation() with them, when CPUs come and go. */
const PdEvents *sampler_events(const SamplerSession *session);
/* The side-band event, with which emitted records are stamped. */
const PdEvent *sampler_side_band_event(const Sampler *sampler);
unsigned sampler_generation(const SamplerSession *session);
/* TRACING_DATA for its tracepoints; empty where it has none. */
Bytes sampler_tracing(const SamplerSession *session);
/* The highest rate that it samples at; 0: it has only periods. */
uint64_t sampler_frequency(const SamplerSession *session);
/* What it asks for and does not get; borrowed. */
const PlanNotes *sampler_notes(const SamplerSession *session);
/* "cpu-clock at 99 Hz", for people. */
const char *sampler_describe(const SamplerSession *session);
unsigned sampler_degraded(const SamplerSession *session);
size_t sampler_n_cpus(const SamplerSession *session);
/* Whether the session has a ring on that CPU. */
bool sampler_has_cpu(const SamplerSession *session, unsigned cpu);
/* Whether it should have one there, since the CPU is online, and has not. */
bool sampler_misses_cpu(const SamplerSession *session, unsigned cpu);

/*
 * One slice of a sweep, at most about budget_bytes of it. A sweep notes the heads of all sample
 * rings, takes all side-band and data mappings (batches with session NULL), calls on_side_band_end,
 * then takes the samples up to the noted heads. Returns 1 when this slice ends the sweep, 0 when
 * more is to be done, or a negative errno (the sink's too).
 */
typedef struct SamplerSinks {
    SamplerSink on_batch;
    int (*on_side_band_end)(void *userdata, uint64_t start_ns); /* when the heads were noted */
    void *userdata;
} SamplerSinks;

int sampler_sweep(Sampler *sampler, uint64_t budget_bytes, const SamplerSinks *sinks);
bool sampler_is_sweeping(const Sampler *sampler);

/* All that the session's completed sweep number `sweep` (counted by the owner from 1, told by
 * sampler_note_sweep() when it was complete) brought is safe: gives its room back to the kernel. */
void sampler_note_sweep(SamplerSession *session, uint64_t sweep);
void sampler_written(SamplerSession *session, uint64_t sweep);

/* What the kernel dropped since the last call, CPU by CPU; fn is called for those that lost. Reads
 * a counter of every event, so it is for once in some seconds. */
typedef struct Loss {
    SamplerSession *session; /* NULL: side-band, or data mappings */
    bool is_data;
    uint64_t id;
    unsigned cpu;
    uint64_t lost; /* records */
} Loss;

typedef int (*SamplerLoss)(void *userdata, const Loss *loss);
int sampler_losses(Sampler *sampler, SamplerLoss fn, void *userdata);

/* Watches all rings (on_full: three eighths of one are full, and was not emptied for another one's
 * sake meanwhile) and the coming and going of CPUs (on_cpus: call sampler_refresh_cpus()). */
int sampler_watch(Sampler *sampler, Loop *loop, LoopCallback on_full, LoopCallback on_cpus,
                  void *userdata);
/* Follows CPUs that came or went, and control groups that were made, removed or replaced: what the
 * rings of what is gone held was handed to the sinks, events of what is new are open and running,
 * the generation of the sessions concerned has changed. 1: CPUs changed; 2: sessions only; 0: all
 * is as it was. */
int sampler_refresh_cpus(Sampler *sampler, const SamplerSinks *sinks);

/* Whether there is such a control group; true where that is not known. */
bool sampler_group_exists(Sampler *sampler, const char *cgroup);
/* The processes or threads that the session is for have ended, and all that they started. */
bool sampler_has_ended(const SamplerSession *session);
/* The session's control group does not exist: it samples when the group is made. */
bool sampler_is_waiting(const SamplerSession *session);
/* From when to when (or now) the session was without its group; true once for each gap that is
 * over, and each time while it goes on. */
bool sampler_take_group_gap(SamplerSession *session, uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/*
 * Where whole CPUs are refused: only processes of the keeper's user are recorded, those that
 * sampler_follow() was told of and all that they start from then on. The owner looks at who runs
 * from time to time.
 */
bool sampler_is_own(const Sampler *sampler);
/* Whether what the kernel does for processes may be seen. */
bool sampler_sees_kernel(const Sampler *sampler);

/* Whether side-band tells of namespaces, as a session asked. */
bool sampler_tells_namespaces(const Sampler *sampler);

/* Whether data mappings are recorded, with which stacks are unwound; in rings of their own. */
bool sampler_tells_data(const Sampler *sampler);
/* Whether samples of the session bring stacks. */
bool sampler_takes_stacks(const SamplerSession *session);

typedef struct SamplerLook {
    const uint32_t *pids;      /* who runs; side-band up to then was handed out */
    const uint64_t *starts_ns; /* since when, by CLOCK_BOOTTIME */
    size_t n;
    /* When side-band told of its fork, and by whom; 0: it did not. */
    uint64_t (*born_ns)(void *userdata, uint32_t pid, uint32_t *ret_ppid);
    /* Its side-band runs now. */
    int (*on_joined)(void *userdata, uint32_t pid);
    void *userdata;
} SamplerLook;

/* Called when a session needs a look, since it follows nobody yet; NULL: no more. */
void sampler_watch_follow(Sampler *sampler, LoopCallback on_wanted, void *userdata);
/* Opens events of those that nobody followed yet, and closes what is of no use any more. Samples of
 * a process begin with sampler_release(). */
int sampler_follow(Sampler *sampler, const SamplerLook *look);
/* Its state is known from /proc, so its samples will have names. */
void sampler_release(Sampler *sampler, uint32_t pid);

typedef struct SamplerCounts {
    uint64_t bytes, side_band_bytes;
    uint64_t lost, side_band_lost, data_lost;
    uint64_t throttles, throttled_ns;
    uint64_t sweeps, drain_ns;
} SamplerCounts;

SamplerCounts sampler_counts(const SamplerSession *session); /* NULL is not allowed */
/* What all sessions share: side-band and sweeps. */
SamplerCounts sampler_shared_counts(const Sampler *sampler);
