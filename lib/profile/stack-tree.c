/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/stack-tree.h"

#include <errno.h>

#include "util/hash-index.h"

/*
 * An array of nodes, found by parent and frame. Children are not linked: a pass over the array from
 * its end adds up whole subtrees, since parents come before their children.
 */

struct StackTree {
    StackNode *nodes;
    HashIndex by_child; /* its rows are the nodes */
    uint32_t nodes_max;
};

static uint64_t stack_tree_key(uint32_t parent, uint32_t frame) {
    return (uint64_t)parent << 32 | frame;
}

int stack_tree_new(uint32_t nodes_max, StackTree **ret) {
    _cleanup_(stack_tree_freep) StackTree *tree = calloc(1, sizeof(*tree));
    StackNode *root;

    assert(nodes_max > 0);
    if (!tree)
        return -ENOMEM;
    tree->nodes_max = nodes_max;
    root = hash_index_append(&tree->by_child, stack_tree_key(STACK_ROOT, UINT32_MAX), &tree->nodes);
    if (!root)
        return -ENOMEM;
    root->frame = UINT32_MAX;
    *ret = TAKE_PTR(tree);
    return 0;
}

StackTree *stack_tree_free(StackTree *tree) {
    if (!tree)
        return NULL;
    free(tree->nodes);
    hash_index_done(&tree->by_child);
    free(tree);
    return NULL;
}

int stack_tree_add(StackTree *tree, uint32_t parent, uint32_t frame, uint32_t *ret) {
    uint64_t key = stack_tree_key(parent, frame);
    uint32_t number, depth;
    StackNode *node;

    assert(parent < tree->by_child.n && frame != UINT32_MAX);
    for (size_t probe = 0; (number = hash_index_next(&tree->by_child, key, &probe)) > 0;)
        if (tree->nodes[number - 1].parent == parent && tree->nodes[number - 1].frame == frame) {
            *ret = number - 1;
            return 0;
        }
    if (tree->by_child.n >= tree->nodes_max)
        return -ENOSPC;
    depth = tree->nodes[parent].depth + 1;
    node = hash_index_append(&tree->by_child, key, &tree->nodes);
    if (!node)
        return -ENOMEM;
    *node = (StackNode){.parent = parent, .frame = frame, .depth = depth};
    *ret = (uint32_t)tree->by_child.n - 1;
    return 0;
}

uint32_t stack_tree_n_nodes(const StackTree *tree) {
    return (uint32_t)tree->by_child.n;
}

const StackNode *stack_tree_node(const StackTree *tree, uint32_t number) {
    return &tree->nodes[number];
}
