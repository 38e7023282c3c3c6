/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Rewrites the feature that names groups by the index of their events, for another event table. */

#include "perfdata/event/event.h"
#include "perfdata/feature/environment.h"

/*
 * Adds the groups of a GROUP_DESC body to those of `env`, with the new index of each event, of
 * which there are n; UINT32_MAX: it was dropped. Leaves out a group with fewer than two events
 * left, one whose events are no longer adjacent, and one that exists already. -EBADMSG: the body is
 * damaged.
 */
int group_desc_add(PdEnvironment *env, Bytes body, bool swap, const uint32_t *new_index, size_t n);
