/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/profile-tree.h"

#include <errno.h>

/*
 * Each cell walks its stack once for callers. For callees it walks from each chosen row in it, the
 * outermost time that the row is there, so a recursive function counts once for a sample.
 */

typedef struct TreeMaker {
    const RowTable *table;
    const uint8_t *chosen;
    ProfileTree *tree;
    uint32_t *seen; /* of each row: the last cell that walked from it, plus one */
    Buffer places;
    bool by_frame, by_symbol;
} TreeMaker;

ProfileTree *profile_tree_free(ProfileTree *tree) {
    if (!tree)
        return NULL;
    hash_index_done(&tree->index);
    free(tree->nodes);
    free(tree->roots);
    free(tree);
    return NULL;
}

static int profile_tree_add_node(ProfileTree *tree, uint32_t parent, uint32_t function,
                                 uint32_t *ret) {
    uint64_t key = (uint64_t)parent << 32 | function;
    TreeNode *node = hash_index_append(&tree->index, key, &tree->nodes);

    if (!node)
        return -ENOMEM;
    *node =
        (TreeNode){.function = function, .parent = parent, .child = UINT32_MAX, .next = UINT32_MAX};
    *ret = (uint32_t)tree->n++;
    if (parent != UINT32_MAX) {
        node->next = tree->nodes[parent].child;
        tree->nodes[parent].child = *ret;
    }
    return 0;
}

static int profile_tree_step(ProfileTree *tree, uint32_t *node, uint32_t function) {
    uint64_t key = (uint64_t)*node << 32 | function;
    size_t probe = 0;
    uint32_t number;

    while ((number = hash_index_next(&tree->index, key, &probe)) > 0) {
        const TreeNode *found = &tree->nodes[number - 1];

        if (found->parent == *node && found->function == function) {
            *node = number - 1;
            return 0;
        }
    }
    return profile_tree_add_node(tree, *node, function, node);
}

static int profile_tree_count(TreeMaker *maker, uint32_t *node, uint32_t place,
                              const ProfileCell *cell) {
    int r = profile_tree_step(maker->tree, node, row_table_function(maker->table, place));

    if (r == 0) {
        maker->tree->nodes[*node].samples += cell->samples;
        maker->tree->nodes[*node].period += cell->period;
    }
    return r;
}

/* The root of a row that was chosen and that this cell has not walked from yet, else UINT32_MAX. */
static int profile_tree_root(TreeMaker *maker, const ProfileCell *cell, uint32_t place,
                             uint32_t number, uint32_t *ret) {
    uint32_t row = row_table_find(maker->table, cell->label, place);
    uint32_t *root;

    *ret = UINT32_MAX;
    if (row == UINT32_MAX || !maker->chosen[row] || maker->seen[row] == number)
        return 0;
    maker->seen[row] = number;
    root = &maker->tree->roots[row];
    if (*root == UINT32_MAX) {
        /* Roots differ by their row, which the key of a node does not have. */
        int r = profile_tree_add_node(maker->tree, UINT32_MAX, row, root);

        if (r < 0)
            return r;
    }
    maker->tree->nodes[*root].samples += cell->samples;
    maker->tree->nodes[*root].period += cell->period;
    *ret = *root;
    return 0;
}

static int profile_tree_walk_callers(TreeMaker *maker, const ProfileCell *cell, uint32_t number,
                                     const uint32_t *places, size_t n) {
    uint32_t node;
    int r = profile_tree_root(maker, cell, maker->by_frame && n > 0 ? places[0] : UINT32_MAX,
                              number, &node);

    if (r < 0 || node == UINT32_MAX)
        return r;
    for (size_t i = maker->by_symbol; i < n && r == 0; i++)
        r = profile_tree_count(maker, &node, places[i], cell);
    return r;
}

static int profile_tree_walk_callees(TreeMaker *maker, const ProfileCell *cell, uint32_t number,
                                     const uint32_t *places, size_t n) {
    int r = 0;

    for (size_t i = n; i-- > 0 && r == 0;) {
        uint32_t node;
        size_t from = maker->by_symbol ? i : i + 1;

        r = profile_tree_root(maker, cell, maker->by_frame ? places[i] : UINT32_MAX, number, &node);
        for (size_t k = from; node != UINT32_MAX && k-- > 0 && r == 0;)
            r = profile_tree_count(maker, &node, places[k], cell);
    }
    return r;
}

static int profile_tree_fill(TreeMaker *maker, TreeDirection direction) {
    const Profile *p = maker->table->profile;
    int r = 0;

    for (size_t i = 0; i < p->n_cells && r == 0; i++) {
        const ProfileCell *cell = &p->cells[i];
        uint32_t number = (uint32_t)i + 1;
        const uint32_t *places;
        size_t n;

        if (maker->table->event != PROFILE_NONE &&
            p->labels[cell->label].values[PROFILE_EVENT] != maker->table->event)
            continue;
        r = row_table_places(maker->table, cell->stack, &maker->places);
        if (r < 0)
            return r;
        places = (const void *)maker->places.data;
        n = maker->places.size / sizeof(*places);
        r = direction == TREE_CALLERS ? profile_tree_walk_callers(maker, cell, number, places, n)
                                      : profile_tree_walk_callees(maker, cell, number, places, n);
    }
    return r;
}

int profile_tree_new(const RowTable *table, TreeDirection direction, const uint8_t *chosen,
                     ProfileTree **ret) {
    _cleanup_(profile_tree_freep) ProfileTree *tree = calloc(1, sizeof(*tree));
    _cleanup_free_ uint32_t *seen = calloc(table->n + 1, sizeof(*seen));
    TreeMaker maker = {.table = table,
                       .chosen = chosen,
                       .tree = tree,
                       .seen = seen,
                       .by_frame = row_keys_have_frame(&table->keys),
                       .by_symbol = row_keys_hold(&table->keys, ROW_SYMBOL)};
    int r;

    if (!tree || !seen)
        return -ENOMEM;
    tree->roots = calloc(table->n + 1, sizeof(*tree->roots));
    if (!tree->roots)
        return -ENOMEM;
    memset(tree->roots, 0xff, table->n * sizeof(*tree->roots));
    r = profile_tree_fill(&maker, direction);
    buffer_done(&maker.places);
    if (r == 0)
        *ret = TAKE_PTR(tree);
    return r;
}

typedef struct TreeSorter {
    const ProfileTree *tree;
    const FrameNames *names;
    bool by_period;
} TreeSorter;

static int profile_tree_compare(const void *x, const void *y, void *arg) {
    const TreeSorter *sorter = arg;
    const TreeNode *a = &sorter->tree->nodes[*(const uint32_t *)x],
                   *b = &sorter->tree->nodes[*(const uint32_t *)y];
    uint64_t v = sorter->by_period ? a->period : a->samples,
             w = sorter->by_period ? b->period : b->samples;
    Bytes s, t;
    int r;

    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (v != w)
        return v > w ? -1 : 1;
    if (!sorter->names || a->parent == UINT32_MAX)
        return 0;
    s = text_set_get(sorter->names->texts, a->function);
    t = text_set_get(sorter->names->texts, b->function);
    r = memcmp(s.data, t.data, MIN(s.size, t.size));
    return r ? r : (s.size > t.size) - (s.size < t.size);
}

int profile_tree_sort(ProfileTree *tree, const FrameNames *names, bool by_period) {
    TreeSorter sorter = {.tree = tree, .names = names, .by_period = by_period};
    _cleanup_free_ uint32_t *order = calloc(tree->n + 1, sizeof(*order));

    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < tree->n; i++) {
        order[i] = i;
        tree->nodes[i].child = UINT32_MAX;
    }
    qsort_r(order, tree->n, sizeof(*order), profile_tree_compare, &sorter);
    /* Backwards, so that the first of each parent ends up in front. */
    for (size_t i = tree->n; i-- > 0;) {
        TreeNode *node = &tree->nodes[order[i]];

        if (node->parent == UINT32_MAX)
            continue;
        node->next = tree->nodes[node->parent].child;
        tree->nodes[node->parent].child = order[i];
    }
    return 0;
}
