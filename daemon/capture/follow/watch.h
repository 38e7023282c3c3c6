/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Watches all rings and the coming and going of CPUs. on_full: three eighths of a ring are full,
 * and no sweep emptied it meanwhile. on_cpus: call sampler_refresh_cpus(). */
int sampler_watch(Sampler *sampler, Loop *loop, LoopCallback on_full, LoopCallback on_cpus,
                  void *userdata);
/* A session is new: looks often again, until all CPUs and groups are there. */
int watch_hurry(Sampler *sampler);
/* The machine may have slept: CPUs whose events are dead are opened again within a second. */
int sampler_check_cpus(Sampler *sampler);
/* Ends all watching. */
void watch_done(Sampler *sampler);
/* Whether the processes or threads of the session have ended, and all that they started. */
bool sampler_has_ended(const SamplerSession *session);
