/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names that a process gave the code that it generated: /tmp/perf-PID.map, a jitdump, or
 * a kept copy of either. */

#include "symbol/find/find.h"

/* Adds them, the last one counts: 0, -ENOENT if there are none that surely are of this process, or
 * -ENOMEM. */
int jit_find(const FindOptions *options, uint32_t pid, NameBuild *build);
