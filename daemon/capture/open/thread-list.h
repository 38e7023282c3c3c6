/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "capture/open/sampler-state.h"

/* Adds the threads of a process, `max` in all; -E2BIG: there are more. */
int thread_list_tasks(uint32_t pid, size_t max, uint32_t **tids, size_t *n);
/* Reads the threads of a session, by its configuration. */
int thread_list_read(SamplerSession *session);
