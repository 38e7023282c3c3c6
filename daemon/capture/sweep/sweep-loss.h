/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Counts what the kernel dropped since the last call, CPU by CPU, and calls fn for those that lost
 * records. Reads a counter of every event, so the owner calls it once in some seconds. */
int sampler_losses(Sampler *sampler, SamplerLoss fn, void *userdata);
