/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Begins or ends watching the group of the session. */
void group_watch(SamplerSession *session);
void group_unwatch(SamplerSession *session);
int group_watch_begin(Sampler *sampler, LoopCallback on_change);
void group_watch_end(Sampler *sampler);
/* Drops the messages that have arrived so far. */
void group_watch_read(const Sampler *sampler);
