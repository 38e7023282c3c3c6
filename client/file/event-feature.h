/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The feature that speaks of groups by the index of their events, made again for other events. */

#include "perfdata/event/event.h"
#include "perfdata/feature/environment.h"

/*
 * Adds the groups of a GROUP_DESC body to those of `env`, each event under its new index, of which
 * there are n; UINT32_MAX: it is gone. A group of which less than two events are left, or whose
 * events do not follow on each other any more, is left out, and one that is there already.
 * -EBADMSG: the body is damaged.
 */
int group_desc_add(PdEnvironment *env, Bytes body, bool swap, const uint32_t *new_index, size_t n);
