/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Starts to record data mappings when a session samples stacks, and stops when none does. */
void data_update(Sampler *sampler);
/* Opens the rings of data mappings on each CPU that has side-band and lacks one. */
void data_open_missing(Sampler *sampler);
