/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/*
 * Like sampler_add() while the loop runs: a thread waits for the keeper, and sweeps include the
 * session once sampler_opening_end() has returned it. One session at a time. `quiet`: failures are
 * not logged.
 */
typedef struct SamplerOpening SamplerOpening;
int sampler_opening_begin(Sampler *sampler, const SessionConfig *config, bool quiet,
                          SamplerOpening **ret);
/* Must be called between two sweeps. 1: the session is open, in *ret; 0: not yet; a negative errno:
 * it could not be opened, and `error` has the sentence of the log. Unless it returns 0, `opening`
 * is freed. */
int sampler_opening_end(SamplerOpening *opening, SamplerSession **ret, char *error, size_t size);
/* Cancels the opening; accepts and returns NULL. */
SamplerOpening *sampler_opening_cancel(SamplerOpening *opening);
/* Tries, as above and without a ring, whether a session could have more of its events by now. 1: it
 * could if it is opened again; 0: not known yet; a negative errno: it could not. */
int sampler_trial_begin(const SamplerSession *session, SamplerOpening **ret);
int sampler_trial_end(SamplerOpening *opening, const SamplerSession *session);
