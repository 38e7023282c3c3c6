/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Watches all rings (on_full: three eighths of one are full, and was not emptied for another one's
 * sake meanwhile) and the coming and going of CPUs (on_cpus: call sampler_refresh_cpus()). */
int sampler_watch(Sampler *sampler, Loop *loop, LoopCallback on_full, LoopCallback on_cpus,
                  void *userdata);
/* No more. */
void watch_done(Sampler *sampler);
/* The processes or threads that the session is for have ended, and all that they started. */
bool sampler_has_ended(const SamplerSession *session);
