/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The tree of boxes of a page: stacks of profiles with labels below them, functions that were
 * inlined as boxes of their own, and weights. Only a node's own weight is kept; what is above it
 * follows from it.
 */

#include "page/page-frame.h"

/* A script counts to 2^53, so weights stop there. */
#define PAGE_WEIGHT_MAX ((UINT64_C(1) << 53) - 1)

enum { PAGE_NODES_MAX = 1 << 23 };

typedef struct PageWeight {
    uint64_t self;                   /* samples, or periods */
    uint64_t samples;                /* the samples too */
    uint64_t before, samples_before; /* of what it is compared with */
} PageWeight;

typedef struct PageTree {
    PageFrames *frames;
    StackTree *stacks;   /* its frames are numbers in `frames` */
    PageWeight *weights; /* by node */
    size_t n_weights;
    uint64_t folded; /* samples in boxes "[other]", see page-fold.h */
    size_t n_cells;
    uint32_t *cell_nodes;   /* by cell of the profile that was added last; its node, 0: left out */
    uint32_t *order, *rank; /* nodes in preorder, and the place of each node there */
    PageWeight total;
} PageTree;

int page_tree_new(bool by_address, PageTree **ret);
PageTree *page_tree_free(PageTree *tree);
DEFINE_CLEANUP(PageTree *, page_tree_free);

/* Adds what `input` selects of its profile, as what the other side is compared with if `before`. */
int page_tree_add(PageTree *tree, const PageInput *input, bool before);
/* Whether a cell of its profile counts. */
bool page_input_selects(const PageInput *input, const ProfileCell *cell);
/* To be called once, after everything was added. */
int page_tree_sort(PageTree *tree);
/* All of it for a flame graph; `options` may be NULL. */
int page_tree_of(const PageInput *input, const PageFlameOptions *options, PageTree **ret);
