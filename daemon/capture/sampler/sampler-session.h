/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* A session is opened in three steps: sampler_session_open() asks the keeper and may run on any
 * thread; the others read what the main thread changes. sampler_session_join() adds the session to
 * the list. */
int sampler_session_prepare(Sampler *sampler, const SessionConfig *config, SamplerSession **ret);
int sampler_session_open(SamplerSession *session);
/* The first step: makes the plan. */
int sampler_session_settle(SamplerSession *session);
int sampler_session_join(SamplerSession *session);
/* Frees a session that is in no list, and closes its events at the keeper if asked; returns
 * NULL. */
SamplerSession *sampler_session_free(SamplerSession *session, bool at_keeper);

/* Logs and returns -EMFILE if the limit does not allow so many descriptors for events. */
int sampler_check_descriptors(const char *name, uint64_t needed);
