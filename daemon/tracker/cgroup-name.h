/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one spelling of a control group's path: that of /proc/PID/cgroup, as profd reads it. */

#include "util/buffer.h"
#include "util/bytes.h"

typedef struct CgroupNames CgroupNames;

/* Reads /proc below `root`, which is "" but in tests; `is_initial`: we are in no cgroup namespace.
 */
int cgroup_names_new(const char *root, bool is_initial, CgroupNames **ret);
CgroupNames *cgroup_names_free(CgroupNames *names);
/* Whether this process is in the cgroup namespace that the kernel began with. */
bool cgroup_names_is_initial(void);
/* The path of the group with this id, which the kernel tells from the root of all; borrowed until
 * the next call. */
Bytes cgroup_names_spell(CgroupNames *names, uint64_t id, Bytes path);
