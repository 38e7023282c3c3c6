/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events and rings. Every online CPU has a side-band event in a ring of its own, shared by all
 * sessions, another one for data mappings while a session samples stacks, and for each session a
 * ring of samples. Records leave in Batches, whole, in the order of a sweep, to a sink of the
 * owner; the sampler does not know where they go.
 *
 * Records that were taken from a session's ring stay in it until the owner has written them: a
 * recorder that dies loses nothing that the ring still holds, and the next one takes it again. Of
 * side-band the newer half of each ring stays, so that the next recorder learns of processes that
 * were not written yet and may be gone when it reads /proc.
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

/* For a session that would replace `old` (NULL: that would be added to all others). */
CheckOptions sampler_check_options(const Sampler *sampler, const SamplerSession *old);

/*
 * Opens side-band on all online CPUs, or takes over what the keeper holds. sampler_forget_rest()
 * closes events that belong to no session of the new recorder.
 */
int sampler_new(const SamplerOptions *options, Sampler **ret);
Sampler *sampler_free(Sampler *sampler);
DEFINE_CLEANUP(Sampler *, sampler_free);

/*
 * Plans and opens the events of a session on its CPUs, disabled; takes over those that the keeper
 * holds for the same session (same name, attrs and CPUs), which may be sampling. Failures are
 * logged in one sentence that names the remedy, and their errno is returned.
 */
int sampler_add(Sampler *sampler, const SessionConfig *config, SamplerSession **ret);

/* Closes its events, here and, on the helper thread, at the keeper; accepts and returns NULL. */
SamplerSession *sampler_remove(SamplerSession *session);
void sampler_forget_rest(Sampler *sampler);
/* From now on CallGraph=auto unwinds no stacks in sessions that are opened, or may do so again. */
void sampler_set_lacks_tables(Sampler *sampler, bool lacks);
int sampler_enable(SamplerSession *session);
int sampler_disable(SamplerSession *session);

void sampler_set_userdata(SamplerSession *session, void *userdata);
void *sampler_userdata(const SamplerSession *session);
/* Whether the session's rings belonged to another recorder, which may have written some of their
 * records already. */
bool sampler_was_taken_over(const SamplerSession *session);

/* The events of the session's files: its sampling events in order, then the side-band event; ids in
 * CPU order. They change, and sampler_generation() with them, when CPUs come and go. */
const PdEvents *sampler_events(const SamplerSession *session);
/* The same events as in the records of a Batch: with the registers and stacks that are unwound
 * before they are stored. */
const PdEvents *sampler_taken_events(const SamplerSession *session);
/* Whether samples of the session are unwound. */
bool sampler_is_unwound(const SamplerSession *session);
/* The memory that outlives the recorder, for samples that are unwound and not written yet; NULL:
 * there is none. The caller unmaps it. Where the session was taken over, it has what another
 * recorder left. */
void *sampler_take_arena(SamplerSession *session, size_t *ret_size);
/* The most bytes of stack that a sample copies; 0: none. */
uint32_t sampler_stack_bytes(const SamplerSession *session);
CallGraph sampler_call_graph(const SamplerSession *session);
/* Which call graphs it takes, as "unwind:16384", and why, in one sentence. */
void sampler_put_call_graph(const SamplerSession *session, Buffer *out);
void sampler_put_call_graph_reason(const SamplerSession *session, Buffer *out);
typedef struct SamplerRings {
    uint64_t bytes;   /* of all its rings */
    uint64_t span_ms; /* how long the smallest holds what a busy CPU samples; 0: there is none */
} SamplerRings;

SamplerRings sampler_rings(const SamplerSession *session);
/* The side-band event, whose id emitted records get. */
const PdEvent *sampler_side_band_event(const Sampler *sampler);
unsigned sampler_generation(const SamplerSession *session);
/* TRACING_DATA for its tracepoints; empty if it has none. */
Bytes sampler_tracing(const SamplerSession *session);
/* Its highest sampling rate; 0: all its events have periods. */
uint64_t sampler_frequency(const SamplerSession *session);
/* What it asks for and does not get; borrowed. */
const PlanNotes *sampler_notes(const SamplerSession *session);
/* "cpu-clock at 99 Hz", for people. */
const char *sampler_describe(const SamplerSession *session);
unsigned sampler_degraded(const SamplerSession *session);
size_t sampler_n_cpus(const SamplerSession *session);
/* Whether the session has a ring on that CPU. */
bool sampler_has_cpu(const SamplerSession *session, unsigned cpu);
/* Whether the session lacks a ring on that CPU, which is online. */
bool sampler_misses_cpu(const SamplerSession *session, unsigned cpu);

/* Whether events of the kernel on behalf of processes may be recorded. */
bool sampler_sees_kernel(const Sampler *sampler);

/* Whether side-band includes namespaces, because a session asked for them. */
bool sampler_records_namespaces(const Sampler *sampler);

/* Whether data mappings are recorded, in rings of their own; stacks are unwound with them. */
bool sampler_records_data(const Sampler *sampler);
/* Whether samples of the session bring stacks. */
bool sampler_takes_stacks(const SamplerSession *session);

/* Called when a new session must follow the running processes; NULL: no more. */
void sampler_watch_follow(Sampler *sampler, LoopCallback on_wanted, void *userdata);
typedef struct SamplerCounts {
    uint64_t bytes, side_band_bytes;
    uint64_t lost, side_band_lost, data_lost;
    uint64_t throttles, throttled_ns;
    uint64_t sweeps, drain_ns;
} SamplerCounts;

SamplerCounts sampler_counts(const SamplerSession *session); /* must not be NULL */
/* What all sessions share: side-band and sweeps. */
SamplerCounts sampler_shared_counts(const Sampler *sampler);
