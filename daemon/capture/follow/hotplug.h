/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Whether sampler_refresh_cpus() has something to do, by messages and the list of CPUs. */
bool hotplug_is_due(Sampler *sampler);
/* Logs, once, a session that lacks CPUs. */
void hotplug_check_partial(SamplerSession *session);
/* Follows CPUs that came or went, and control groups that were made, removed or replaced: what the
 * rings of what is gone held was handed to the sinks, events of what is new are open and running,
 * the generation of the sessions concerned has changed. 1: CPUs changed; 2: sessions only; 0: all
 * is as it was. */
int sampler_refresh_cpus(Sampler *sampler, const SamplerSinks *sinks);
