/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Lists the existing cgroups, with the ids that samples have. */

#include <stdint.h>

enum {
    CGROUPS_MAX = 65536,
    CGROUP_DEPTH_MAX = 64,
};

/* A negative return value stops the walk. */
typedef int (*CgroupCallback)(void *userdata, uint64_t id, const char *path);

/* Calls back for each cgroup, parents first, with its path from the root of the hierarchy as in the
 * kernel's CGROUP record. -ENOENT: no hierarchy that perf events use is mounted. `root` is ""
 * except in tests. */
int cgroup_walk(const char *root, CgroupCallback callback, void *userdata);
