/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Whether sampler_refresh_cpus() has something to do, by messages and the list of CPUs. */
bool hotplug_is_due(Sampler *sampler);
/* Looks for CPUs that were away and whose events are dead, though no message came and all of them
 * are online. Takes 20 ms if there are some; they are followed by the next
 * sampler_refresh_cpus(). */
bool hotplug_find_dead(Sampler *sampler);
/* Whether no CPU is gone or lacking. */
bool hotplug_is_settled(const Sampler *sampler);
/* Logs once that a session lacks CPUs. */
void hotplug_check_partial(SamplerSession *session);
/* Follows CPUs that came or went, and control groups that were made, removed or replaced.
 * Afterwards the sinks have the records of closed rings, new events are open and running, and the
 * generation of the sessions concerned has changed. Returns 1: CPUs changed; 2: only sessions
 * changed; 0: nothing did. */
int sampler_refresh_cpus(Sampler *sampler, const SamplerSinks *sinks);
