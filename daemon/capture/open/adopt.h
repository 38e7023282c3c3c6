/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Asks the keeper for the events of an earlier recorder. */
int adopt_list(Sampler *sampler);
/* Takes over the rings of the set that can go on as they are, on any CPU; closes other events of
 * it. */
int adopt_rings(Sampler *sampler, RingSet *set);
/* Marks the rings of CPUs that were away as gone, even if nothing reported it; first those of
 * side-band, which show it, then others. */
void adopt_mark_dead(const Sampler *sampler, const RingSet *set);
/* Memory that an earlier recorder left for the session; false: none. */
bool adopt_arena(SamplerSession *session, int *ret_fd);
/* Closes the events that nobody took over. */
void adopt_forget(Sampler *sampler);
/* Leaves them to the keeper, for the next recorder. */
void adopt_leave(Sampler *sampler);
