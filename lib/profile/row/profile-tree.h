/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What is above or below the rows of a table: a tree of functions for each chosen row. Callers
 * begin at the function that ran and go outwards; callees begin where the row is first called and
 * go inwards.
 */

#include "profile/row/profile-row.h"
#include "util/hash-index.h"

typedef enum TreeDirection { TREE_CALLERS, TREE_CALLEES } TreeDirection;

typedef struct TreeNode {
    uint32_t function;        /* a number in FrameNames.texts; of a root that of its row */
    uint32_t parent;          /* UINT32_MAX: a root */
    uint32_t child, next;     /* the first child, the next of its siblings; UINT32_MAX: none */
    uint64_t samples, period; /* of the node and what is below it */
} TreeNode;

typedef struct ProfileTree {
    TreeNode *nodes;
    size_t n;
    uint32_t *roots; /* of each row of the table; UINT32_MAX: it was not chosen */
    HashIndex index;
} ProfileTree;

/* `chosen` has a byte for each row, not 0: make its tree. -ENOMEM. */
int profile_tree_new(const RowTable *table, TreeDirection direction, const uint8_t *chosen,
                     ProfileTree **ret);
ProfileTree *profile_tree_free(ProfileTree *tree);
DEFINE_CLEANUP(ProfileTree *, profile_tree_free);

/* Sorts the children of every node, the largest first. -ENOMEM. */
int profile_tree_sort(ProfileTree *tree, const FrameNames *names, bool by_period);
