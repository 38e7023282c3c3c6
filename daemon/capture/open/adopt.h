/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Asks the keeper what an earlier recorder left. */
int adopt_list(Sampler *sampler);
/* The rings of the set that can go on as they are, on any CPU; events of it that cannot are closed.
 */
int adopt_rings(Sampler *sampler, RingSet *set);
/* Closes the rest. */
void adopt_forget(Sampler *sampler);
/* Leaves the rest to the keeper, for the next recorder. */
void adopt_leave(Sampler *sampler);
