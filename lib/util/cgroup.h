/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds the control group tree that perf events use, since a host may have several. */

enum { CGROUP_TREE_PATH_MAX = 4096 };

typedef struct CgroupTree {
    unsigned version;                 /* 2, or 1: the hierarchy of the controller perf_event */
    char mount[CGROUP_TREE_PATH_MAX]; /* where it is mounted */
    char top[CGROUP_TREE_PATH_MAX];   /* the part of the tree that is mounted; "": all of it, or
                                       * unknown */
} CgroupTree;

/* If only a part of the tree is mounted, samples still have the whole path of a group: returns the
 * part below the mount, or NULL if the group is outside. */
const char *cgroup_below_mount(const CgroupTree *tree, const char *cgroup);
/* Reads /proc below `root`, which is "" except in tests. -ENOENT: no tree is mounted here. */
int cgroup_tree_find(const char *root, CgroupTree *ret);
