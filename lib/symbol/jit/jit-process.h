/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A process that still lives, and the files in which it names its code. */

#include "symbol/find/open-regular.h"

typedef struct JitProcess {
    int proc; /* its folder in /proc */
    uint32_t uid;
    uint32_t inner_pid; /* as it sees itself */
    uint64_t start_ns;  /* since the boot */
} JitProcess;

/* -ENOENT: no process has this pid now. */
int jit_process_open(const char *root, uint32_t pid, JitProcess *ret);
void jit_process_done(JitProcess *process);
/* Opens its /tmp/perf-PID.map, as it sees that path. Only a regular file of its own user with one
 * name counts, written since the process began. A negative errno: there is none. */
int jit_process_open_map(const JitProcess *process);
/* Opens the jitdump that it has mapped, by the same rules. */
int jit_process_open_dump(const JitProcess *process);
