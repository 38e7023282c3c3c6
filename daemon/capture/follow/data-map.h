/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Data mappings are recorded while a session samples stacks, and no longer. */
void data_update(Sampler *sampler);
/* On each CPU that has side-band and lacks them. */
void data_open_missing(Sampler *sampler);
