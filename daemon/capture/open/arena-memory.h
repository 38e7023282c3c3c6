/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Opens the memory for unwound samples of the session, or takes over what an earlier recorder left.
 * Without it the session records as well, so failures are logged only. */
void arena_memory_open(SamplerSession *session, size_t n_cpus);
/* Unmaps and closes it, at the keeper too if asked. */
void arena_memory_close(SamplerSession *session, bool at_keeper);
