/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/*
 * As sampler_add(), while the loop runs: what has to wait for the keeper is done on a thread, and
 * the session is in sweeps from when sampler_opening_end() returned it. One at a time. `quiet`:
 * what fails is not logged.
 */
typedef struct SamplerOpening SamplerOpening;
int sampler_opening_begin(Sampler *sampler, const SessionConfig *config, bool quiet,
                          SamplerOpening **ret);
/* 1: it is open, in *ret; 0: not yet; a negative errno: it cannot be, with the sentence of the log
 * in `error`. Unless it is 0, `opening` is gone. Between two sweeps. */
int sampler_opening_end(SamplerOpening *opening, SamplerSession **ret, char *error, size_t size);
/* Nobody wants it any more; accepts and returns NULL. */
SamplerOpening *sampler_opening_cancel(SamplerOpening *opening);
/* Tries, as above and without a ring, whether a session may have more of its events by now. 1: it
 * may, opened anew; 0: not known yet; a negative errno: it may not. */
int sampler_trial_begin(const SamplerSession *session, SamplerOpening **ret);
int sampler_trial_end(SamplerOpening *opening, const SamplerSession *session);
