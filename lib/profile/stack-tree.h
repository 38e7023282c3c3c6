/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Interned stacks: a tree of frames with the outermost callers at the top. A node stands for the
 * stack from the root down to it, so stacks share their beginnings. Node 0 is the root, the empty
 * stack.
 */

#include "profile/frame.h"
#include "util/macro.h"

typedef struct StackNode {
    uint32_t parent;
    uint32_t frame; /* its number; of the root UINT32_MAX */
    uint32_t depth; /* frames from the root; 0: the root */
} StackNode;

enum { STACK_ROOT = 0 };

typedef struct StackTree StackTree;

/* It takes at most `nodes_max` nodes. */
int stack_tree_new(uint32_t nodes_max, StackTree **ret);
StackTree *stack_tree_free(StackTree *tree);
DEFINE_CLEANUP(StackTree *, stack_tree_free);

/* The node of `parent`'s stack with one more frame. -ENOSPC: there are nodes_max. */
int stack_tree_add(StackTree *tree, uint32_t parent, uint32_t frame, uint32_t *ret);

uint32_t stack_tree_n_nodes(const StackTree *tree);
/* Valid until something is added. Parents have smaller numbers than their children. */
const StackNode *stack_tree_node(const StackTree *tree, uint32_t number);
