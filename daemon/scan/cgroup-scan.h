/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The cgroups there are, by the ids that samples carry. */

#include <stdint.h>

enum {
    CGROUPS_MAX = 65536,
    CGROUP_DEPTH_MAX = 64,
};

/* A negative return ends the walk. */
typedef int (*CgroupCallback)(void *userdata, uint64_t id, const char *path);

/* Calls back for each cgroup, parents first, with its path from the root of the hierarchy as the
 * kernel's CGROUP record has it. -ENOENT: none are mounted that perf events follow. `root` is ""
 * but in tests. */
int cgroup_walk(const char *root, CgroupCallback callback, void *userdata);
