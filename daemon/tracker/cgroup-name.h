/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Spells the path of a control group in the same way as /proc/PID/cgroup does for profd. */

#include "util/buffer.h"
#include "util/bytes.h"

typedef struct CgroupNames CgroupNames;

/* Reads /proc below `root`, which is "" except in tests; `is_initial`: profd is in the initial
 * cgroup namespace. */
int cgroup_names_new(const char *root, bool is_initial, CgroupNames **ret);
CgroupNames *cgroup_names_free(CgroupNames *names);
/* Whether this process is in the initial cgroup namespace. */
bool cgroup_names_is_initial(void);
/* Converts the path of the group with this id, as in the kernel's record, where it begins at the
 * root of the host; borrowed until the next call. */
Bytes cgroup_names_spell(CgroupNames *names, uint64_t id, Bytes path);
