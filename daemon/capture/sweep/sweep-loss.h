/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* What the kernel dropped since the last call, CPU by CPU; fn is called for those that lost. Reads
 * a counter of every event, so it is for once in some seconds. */
int sampler_losses(Sampler *sampler, SamplerLoss fn, void *userdata);
