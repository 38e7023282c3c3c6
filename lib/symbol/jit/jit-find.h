/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the names that a process gave the code that it generated: /tmp/perf-PID.map, a jitdump, or
 * a kept copy of either. */

#include "symbol/find/find.h"

typedef struct JitLines {
    Buffer lines;      /* as code_map_read() makes them, in the order in which they count */
    uint64_t start_ns; /* of the process, by the wall clock */
} JitLines;

/* Finds them as text: 0, -ENOENT if there are none that surely are of this process, or -ENOMEM. */
int jit_find_lines(const FindOptions *options, uint32_t pid, JitLines *ret);
void jit_lines_done(JitLines *lines);
/* Adds them, the last one counts: 0, -ENOENT if there are none that surely are of this process, or
 * -ENOMEM. */
int jit_find(const FindOptions *options, uint32_t pid, NameBuild *build);
