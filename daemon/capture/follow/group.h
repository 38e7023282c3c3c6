/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Looks up the group of a session that begins. */
void group_begin(SamplerSession *session);
/* Looks up the groups of all sessions. True: some session has to be opened anew; its rings are
 * marked as gone. */
bool groups_refresh(Sampler *sampler);
/* The session's events are open again, if its group is there. */
void group_opened(SamplerSession *session);

/* Whether there is such a control group; true where that is not known. */
bool sampler_group_exists(Sampler *sampler, const char *cgroup);
/* The session's control group does not exist: it samples when the group is made. */
bool sampler_is_waiting(const SamplerSession *session);
/* From when to when (or now) the session was without its group; true once for each gap that is
 * over, and each time while it goes on. */
bool sampler_take_group_gap(SamplerSession *session, uint64_t *ret_from_ns, uint64_t *ret_to_ns);
