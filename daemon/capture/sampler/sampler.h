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

#include "capture/follow/group.h"
#include "capture/follow/hotplug.h"
#include "capture/follow/follow-process.h"
#include "capture/follow/watch.h"
#include "capture/open/sampler-type.h"
#include "capture/plan/check.h"
#include "capture/plan/degraded-reason.h"
#include "capture/plan/plan-note.h"
#include "capture/sampler/opening.h"
#include "capture/sweep/sweep-loss.h"
#include "capture/sweep/sweep.h"
#include "config/config.h"
#include "perfdata/event/event.h"

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
/* The same events as the records of a Batch have them: with the registers and stacks that are
 * unwound before they are stored. */
const PdEvents *sampler_taken_events(const SamplerSession *session);
/* Whether samples of the session are unwound. */
bool sampler_is_unwound(const SamplerSession *session);
/* The most bytes of stack that a sample copies; 0: none. */
uint32_t sampler_stack_bytes(const SamplerSession *session);
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

/* Whether what the kernel does for processes may be seen. */
bool sampler_sees_kernel(const Sampler *sampler);

/* Whether side-band tells of namespaces, as a session asked. */
bool sampler_records_namespaces(const Sampler *sampler);

/* Whether data mappings are recorded, with which stacks are unwound; in rings of their own. */
bool sampler_records_data(const Sampler *sampler);
/* Whether samples of the session bring stacks. */
bool sampler_takes_stacks(const SamplerSession *session);

/* Called when a session needs a look, since it follows nobody yet; NULL: no more. */
void sampler_watch_follow(Sampler *sampler, LoopCallback on_wanted, void *userdata);
typedef struct SamplerCounts {
    uint64_t bytes, side_band_bytes;
    uint64_t lost, side_band_lost, data_lost;
    uint64_t throttles, throttled_ns;
    uint64_t sweeps, drain_ns;
} SamplerCounts;

SamplerCounts sampler_counts(const SamplerSession *session); /* NULL is not allowed */
/* What all sessions share: side-band and sweeps. */
SamplerCounts sampler_shared_counts(const Sampler *sampler);
