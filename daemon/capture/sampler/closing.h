/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* A session that is not beside the others, here and at the keeper, and beside the main thread where
 * that may be; returns NULL. */
SamplerSession *closing_begin(SamplerSession *session);
