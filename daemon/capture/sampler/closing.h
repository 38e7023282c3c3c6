/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Closes a session that has left the list, here and at the keeper, and on the helper thread if
 * there is one; returns NULL. */
SamplerSession *closing_begin(SamplerSession *session);
