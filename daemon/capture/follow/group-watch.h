/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Hears of what happens around the group of the session from now on, or no more. */
void group_watch(SamplerSession *session);
void group_unwatch(SamplerSession *session);
int group_watch_begin(Sampler *sampler, LoopCallback on_change);
void group_watch_end(Sampler *sampler);
/* Forgets what it heard of so far. */
void group_watch_read(const Sampler *sampler);
