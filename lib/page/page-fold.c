/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-fold.h"

#include <errno.h>

/*
 * A node is kept if it has as many samples, with all below it, as the last of those that fit. So
 * callers of a node that is kept are kept. The tree is made anew, and the cells follow.
 */

static int page_fold_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

/* Samples of each node with all below it, and how many a node needs to be kept. */
static int page_fold_totals(const PageTree *tree, uint32_t nodes_max, uint64_t **ret,
                            uint64_t *ret_least) {
    uint32_t n = stack_tree_n_nodes(tree->stacks);
    _cleanup_free_ uint64_t *totals = calloc(n, sizeof(*totals));
    _cleanup_free_ uint64_t *sorted = calloc(n, sizeof(*sorted));

    if (!totals || !sorted)
        return -ENOMEM;
    for (uint32_t i = n; i-- > 0;) {
        totals[i] += tree->weights[i].samples;
        if (i > 0)
            totals[stack_tree_node(tree->stacks, i)->parent] += totals[i];
    }
    memcpy(sorted, totals, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), page_fold_order);
    *ret_least = sorted[nodes_max - 1] + 1;
    *ret = TAKE_PTR(totals);
    return 0;
}

/* The new tree, and for each node of the old one its node there. */
static int page_fold_tree(PageTree *tree, const uint64_t *totals, uint64_t least, uint32_t *places,
                          StackTree *folded) {
    uint32_t n = stack_tree_n_nodes(tree->stacks), other;
    int r;

    r = page_frames_add_label(tree->frames, (PageKind)FRAME_OTHER,
                              (Bytes){.data = (const uint8_t *)"[other]", .size = 7}, &other);
    for (uint32_t i = 1; i < n && r >= 0; i++) {
        const StackNode *node = stack_tree_node(tree->stacks, i);
        bool kept = totals[i] >= least, above = totals[node->parent] >= least || node->parent == 0;

        /* A node below a folded one is in the same box "[other]". */
        if (!kept && !above)
            places[i] = places[node->parent];
        else
            r = stack_tree_add(folded, places[node->parent], kept ? node->frame : other,
                               &places[i]);
        if (!kept)
            tree->folded += tree->weights[i].samples;
    }
    return r;
}

static void page_fold_weights(PageTree *tree, const uint32_t *places, PageWeight *weights,
                              size_t n_cells) {
    for (size_t i = 0; i < tree->n_weights; i++) {
        PageWeight *to = &weights[places[i]];

        to->self += tree->weights[i].self;
        to->samples += tree->weights[i].samples;
        to->before += tree->weights[i].before;
        to->samples_before += tree->weights[i].samples_before;
    }
    for (size_t i = 0; i < n_cells; i++)
        tree->cell_nodes[i] = places[tree->cell_nodes[i]];
}

int page_tree_fold(PageTree *tree, uint32_t nodes_max) {
    uint32_t n = stack_tree_n_nodes(tree->stacks);
    _cleanup_(stack_tree_freep) StackTree *folded = NULL;
    _cleanup_free_ uint32_t *places = calloc(n, sizeof(*places));
    _cleanup_free_ uint64_t *totals = NULL;
    PageWeight *weights;
    uint64_t least;
    int r;

    assert(nodes_max > 0 && !tree->order);
    if (n <= nodes_max)
        return 0;
    if (!places)
        return -ENOMEM;
    r = page_fold_totals(tree, nodes_max, &totals, &least);
    if (r >= 0)
        r = stack_tree_new(PAGE_NODES_MAX, &folded);
    if (r >= 0)
        r = page_fold_tree(tree, totals, least, places, folded);
    if (r < 0)
        return r;
    weights = calloc(stack_tree_n_nodes(folded), sizeof(*weights));
    if (!weights)
        return -ENOMEM;
    page_fold_weights(tree, places, weights, tree->n_cells);
    free(tree->weights);
    tree->weights = weights;
    tree->n_weights = stack_tree_n_nodes(folded);
    stack_tree_free(tree->stacks);
    tree->stacks = TAKE_PTR(folded);
    return 0;
}
