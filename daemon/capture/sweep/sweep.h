/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

enum { SWEEP_BATCH_BYTES = 256 * 1024 }; /* the most that a batch has */

/*
 * One slice of a sweep, of about budget_bytes at most. A sweep notes the heads of all sample rings,
 * takes all side-band and data mappings (batches with session NULL), calls on_side_band_end, then
 * takes the samples up to the noted heads. Returns 1 when this slice ends the sweep, 0 when more is
 * left, or a negative errno (the sink's too).
 */
int sampler_sweep(Sampler *sampler, uint64_t budget_bytes, const SamplerSinks *sinks);
bool sampler_is_sweeping(const Sampler *sampler);

/* Everything from the session's completed sweep number `sweep` (counted by the owner from 1, see
 * sampler_note_sweep()) is written: gives its room back to the kernel. */
void sampler_note_sweep(SamplerSession *session, uint64_t sweep);
void sampler_written(SamplerSession *session, uint64_t sweep);
/* Whether what was taken and is not written yet fills much of some ring. */
bool sampler_holds_much(const SamplerSession *session);
