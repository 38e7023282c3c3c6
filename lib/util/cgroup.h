/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which control groups perf events follow, since a host may have several trees of them. */

enum { CGROUP_TREE_PATH_MAX = 4096 };

typedef struct CgroupTree {
    unsigned version;                 /* 2, or 1: the hierarchy of the controller perf_event */
    char mount[CGROUP_TREE_PATH_MAX]; /* where it is mounted */
    char top[CGROUP_TREE_PATH_MAX];   /* which part of it that is; "": the whole, or not known */
} CgroupTree;

/* Where only a part of the tree is mounted, samples have the whole path of a group: what is left of
 * it below the mount, or NULL when it is not there. */
const char *cgroup_below_mount(const CgroupTree *tree, const char *cgroup);
/* Reads /proc below `root`, which is "" but in tests. -ENOENT: none is mounted here. */
int cgroup_tree_find(const char *root, CgroupTree *ret);
