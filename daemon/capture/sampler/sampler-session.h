/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* To open a session takes three steps: sampler_session_open() asks the keeper and may run on any
 * thread, the others look at what the main thread changes. sampler_session_join() puts it beside
 * the others. */
int sampler_session_prepare(Sampler *sampler, const SessionConfig *config, SamplerSession **ret);
int sampler_session_open(SamplerSession *session);
/* The first part of it: what it would count. */
int sampler_session_settle(SamplerSession *session);
int sampler_session_join(SamplerSession *session);
/* One that is not beside the others, here and if asked at the keeper; returns NULL. */
SamplerSession *sampler_session_free(SamplerSession *session, bool at_keeper);

/* Logs and returns -EMFILE when so many descriptors for events are too many. */
int sampler_check_descriptors(const char *name, uint64_t needed);
