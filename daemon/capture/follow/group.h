/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Looks up the group of a session that begins. */
void group_begin(SamplerSession *session);
/* Looks up the groups of all sessions. Returns true if some session must be opened again; its rings
 * are marked as gone. */
bool groups_refresh(Sampler *sampler);
/* Must be called when the session's events are open again; its group may still be missing. */
void group_opened(SamplerSession *session);

/* Whether the control group exists; true if this is unknown. */
bool sampler_group_exists(Sampler *sampler, const char *cgroup);
/* Whether the session's control group is missing: the session samples as soon as it is made. */
bool sampler_is_waiting(const SamplerSession *session);
/* Returns from when to when (or now) the session was without its group: once for each gap that is
 * over, and each time while one lasts. */
bool sampler_take_group_gap(SamplerSession *session, uint64_t *ret_from_ns, uint64_t *ret_to_ns);
