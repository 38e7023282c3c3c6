/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Reads the kernel's limit and notes which sessions are above it now. */
void rate_watch(Sampler *sampler);
