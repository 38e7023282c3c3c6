/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-tree.h"

#include <errno.h>
#include <stdio.h>

/*
 * Two passes over the cells of a profile: the first finds the node of each cell, the second adds
 * the weights up. Cells of one path of labels come together, so that the node of a stack is looked
 * for once for each such path (PageWalk.nodes), however many spans of time it was seen in.
 */

typedef struct PageWalk {
    PageTree *tree;
    const PageInput *input;
    uint32_t *boxes;       /* by frame of the profile: the first of its boxes, innermost first */
    uint32_t *lines;       /* box numbers */
    uint32_t *nodes;       /* by stack of the profile: its node under the prefix in `prefixes` */
    uint32_t *prefixes;    /* by stack: the prefix that `nodes` is for, plus one */
    uint32_t *path;        /* scratch: stacks on the way to the root */
    uint32_t *label_nodes; /* by label: the node of its boxes */
    uint32_t *cells;       /* cells by prefix */
    uint32_t *counts;      /* scratch, by prefix */
} PageWalk;

int page_tree_new(bool by_address, PageTree **ret) {
    _cleanup_(page_tree_freep) PageTree *tree = calloc(1, sizeof(*tree));
    int r;

    if (!tree)
        return -ENOMEM;
    r = page_frames_new(by_address, &tree->frames);
    if (r >= 0)
        r = stack_tree_new(PAGE_NODES_MAX, &tree->stacks);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(tree);
    return 0;
}

PageTree *page_tree_free(PageTree *tree) {
    if (!tree)
        return NULL;
    page_frames_free(tree->frames);
    stack_tree_free(tree->stacks);
    free(tree->weights);
    free(tree->cell_nodes);
    free(tree->order);
    free(tree->rank);
    free(tree);
    return NULL;
}

static void page_walk_done(PageWalk *w) {
    free(w->boxes);
    free(w->lines);
    free(w->nodes);
    free(w->prefixes);
    free(w->path);
    free(w->label_nodes);
    free(w->cells);
    free(w->counts);
}

/* A tree that is full keeps the outer part of a stack. */
static int page_tree_push(PageTree *tree, uint32_t *node, uint32_t box) {
    int r = stack_tree_add(tree->stacks, *node, box, node);

    return r == -ENOSPC ? 0 : r;
}

/* The boxes of all frames of the profile, one array behind the other. */
static int page_walk_boxes(PageWalk *w) {
    const FrameTable *table = w->input->profile->frames;
    uint32_t n = frame_table_n_frames(table), at = 0;
    size_t n_lines = 0;
    int r = 0;

    for (uint32_t i = 0; i < n; i++)
        n_lines += page_frames_lines(w->input, i);
    if (n_lines > UINT32_MAX)
        return -ENOSPC;
    w->boxes = calloc((size_t)n + 1, sizeof(*w->boxes));
    w->lines = calloc(n_lines + 1, sizeof(*w->lines));
    if (!w->boxes || !w->lines)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        uint32_t lines = page_frames_lines(w->input, i);

        w->boxes[i] = at;
        for (uint32_t k = 0; k < lines && r >= 0; k++)
            r = page_frames_add(w->tree->frames, w->input, i, k, &w->lines[at++]);
    }
    w->boxes[n] = at;
    return r;
}

/* The labels that become boxes, the outermost first: PAGE_LABELS. */
/* clang-format off */
static const struct {
    ProfileKey key;
    PageKind kind;
    bool is_text;
    const char *none; /* the box of an empty text; NULL: no box */
} page_labels[] = {
    {PROFILE_UNIT,      PAGE_UNIT,      true,  "(no unit)"},
    {PROFILE_CONTAINER, PAGE_CONTAINER, true,  NULL},
    {PROFILE_CGROUP,    PAGE_CGROUP,    true,  "/"},
    {PROFILE_COMM,      PAGE_COMMAND,   true,  "(no name)"},
    {PROFILE_PID,       PAGE_PROCESS,   false, NULL},
    {PROFILE_TID,       PAGE_THREAD,    false, NULL},
    {PROFILE_CPU,       PAGE_CPU,       false, NULL},
};
/* clang-format on */

static int page_walk_label(PageWalk *w, const ProfileLabel *label, uint32_t *ret) {
    const Profile *profile = w->input->profile;

    *ret = STACK_ROOT;
    for (size_t i = 0; i < ARRAY_SIZE(page_labels); i++) {
        ProfileKey key = page_labels[i].key;
        uint32_t value = label->values[key], box;
        char number[32];
        const char *word = number;
        Bytes text = {};
        int r;

        if (!(profile->keys & profile_key_bit(key)) || value == PROFILE_NONE)
            continue;
        if (page_labels[i].is_text) {
            text = text_set_get(profile->texts, value);
            word = page_labels[i].none;
        } else
            snprintf(number, sizeof(number), "%s %u", page_kind_names[page_labels[i].kind], value);
        if (text.size == 0 && !word)
            continue;
        if (text.size == 0)
            text = (Bytes){.data = (const uint8_t *)word, .size = strlen(word)};
        r = page_frames_add_label(w->tree->frames, page_labels[i].kind, text, &box);
        if (r >= 0)
            r = page_tree_push(w->tree, ret, box);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Sorts the cells by the node of their labels. */
static int page_walk_sort(PageWalk *w) {
    const Profile *profile = w->input->profile;
    uint32_t n_prefixes, at = 0;
    int r = 0;

    w->label_nodes = calloc(profile->n_labels + 1, sizeof(*w->label_nodes));
    w->cells = calloc(profile->n_cells + 1, sizeof(*w->cells));
    if (!w->label_nodes || !w->cells)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_labels && r >= 0; i++)
        r = page_walk_label(w, &profile->labels[i], &w->label_nodes[i]);
    if (r < 0)
        return r;
    n_prefixes = stack_tree_n_nodes(w->tree->stacks);
    w->counts = calloc(n_prefixes, sizeof(*w->counts));
    if (!w->counts)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_cells; i++)
        w->counts[w->label_nodes[profile->cells[i].label]]++;
    for (uint32_t i = 0; i < n_prefixes; i++) {
        uint32_t count = w->counts[i];

        w->counts[i] = at;
        at += count;
    }
    for (size_t i = 0; i < profile->n_cells; i++)
        w->cells[w->counts[w->label_nodes[profile->cells[i].label]]++] = (uint32_t)i;
    return 0;
}

static int page_walk_stack(PageWalk *w, uint32_t prefix, uint32_t stack, uint32_t *ret) {
    const StackTree *stacks = w->input->profile->stacks;
    uint32_t n = 0, node = prefix, at = stack;
    int r = 0;

    while (at != STACK_ROOT && w->prefixes[at] != prefix + 1) {
        w->path[n++] = at;
        at = stack_tree_node(stacks, at)->parent;
    }
    if (at != STACK_ROOT)
        node = w->nodes[at];
    while (n > 0 && r >= 0) {
        uint32_t frame;

        at = w->path[--n];
        frame = stack_tree_node(stacks, at)->frame;
        for (uint32_t i = w->boxes[frame + 1]; i > w->boxes[frame] && r >= 0; i--)
            r = page_tree_push(w->tree, &node, w->lines[i - 1]);
        w->nodes[at] = node;
        w->prefixes[at] = prefix + 1;
    }
    *ret = node;
    return r;
}

bool page_input_selects(const PageInput *input, const ProfileCell *cell) {
    const Profile *profile = input->profile;

    return input->event == PROFILE_NONE || !(profile->keys & profile_key_bit(PROFILE_EVENT)) ||
           profile->labels[cell->label].values[PROFILE_EVENT] == input->event;
}

static int page_walk_cells(PageWalk *w) {
    const Profile *profile = w->input->profile;
    uint32_t n_stacks = stack_tree_n_nodes(profile->stacks);
    int r = 0;

    w->nodes = calloc(n_stacks, sizeof(*w->nodes));
    w->prefixes = calloc(n_stacks, sizeof(*w->prefixes));
    w->path = calloc(n_stacks, sizeof(*w->path));
    free(w->tree->cell_nodes);
    w->tree->n_cells = profile->n_cells;
    w->tree->cell_nodes = calloc(profile->n_cells + 1, sizeof(*w->tree->cell_nodes));
    if (!w->nodes || !w->prefixes || !w->path || !w->tree->cell_nodes)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_cells && r >= 0; i++) {
        const ProfileCell *cell = &profile->cells[w->cells[i]];

        if (page_input_selects(w->input, cell))
            r = page_walk_stack(w, w->label_nodes[cell->label], cell->stack,
                                &w->tree->cell_nodes[w->cells[i]]);
    }
    return r;
}

static void page_weight_add(uint64_t *sum, uint64_t value) {
    *sum = value > PAGE_WEIGHT_MAX - *sum ? PAGE_WEIGHT_MAX : *sum + value;
}

static int page_tree_weigh(PageTree *tree, const PageInput *input, bool before) {
    const Profile *profile = input->profile;
    size_t n = stack_tree_n_nodes(tree->stacks);
    PageWeight *weights = realloc(tree->weights, n * sizeof(*weights));

    if (!weights)
        return -ENOMEM;
    memset(weights + tree->n_weights, 0, (n - tree->n_weights) * sizeof(*weights));
    tree->weights = weights;
    tree->n_weights = n;
    for (size_t i = 0; i < profile->n_cells; i++) {
        const ProfileCell *cell = &profile->cells[i];
        uint64_t value = input->by_period ? cell->period : cell->samples;
        PageWeight *to[] = {&weights[tree->cell_nodes[i]], &tree->total};

        if (!page_input_selects(input, cell))
            continue;
        for (size_t k = 0; k < ARRAY_SIZE(to); k++) {
            page_weight_add(before ? &to[k]->before : &to[k]->self, value);
            page_weight_add(before ? &to[k]->samples_before : &to[k]->samples, cell->samples);
        }
    }
    return 0;
}

int page_tree_add(PageTree *tree, const PageInput *input, bool before) {
    _cleanup_(page_walk_done) PageWalk w = {.tree = tree, .input = input};
    int r;

    if (input->profile->n_cells > UINT32_MAX)
        return -ENOSPC;
    r = page_walk_boxes(&w);
    if (r >= 0)
        r = page_walk_sort(&w);
    if (r >= 0)
        r = page_walk_cells(&w);
    return r < 0 ? r : page_tree_weigh(tree, input, before);
}

/* Children in the order in which they were added, which is that of the profile. */
int page_tree_sort(PageTree *tree) {
    uint32_t n = stack_tree_n_nodes(tree->stacks);
    _cleanup_free_ uint32_t *sizes = calloc(n, sizeof(*sizes));

    assert(!tree->order);
    tree->order = calloc(n, sizeof(*tree->order));
    tree->rank = calloc(n, sizeof(*tree->rank));
    if (!sizes || !tree->order || !tree->rank)
        return -ENOMEM;
    for (uint32_t i = n; i-- > 1;)
        sizes[stack_tree_node(tree->stacks, i)->parent] += ++sizes[i];
    /* A node's place is behind its parent and the children that were placed before; sizes[parent]
     * becomes the next free place. */
    sizes[STACK_ROOT] = 1;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t parent = stack_tree_node(tree->stacks, i)->parent, size = sizes[i];

        tree->rank[i] = sizes[parent];
        sizes[parent] += size;
        sizes[i] = tree->rank[i] + 1;
    }
    for (uint32_t i = 0; i < n; i++)
        tree->order[tree->rank[i]] = i;
    return 0;
}

int page_tree_of(const PageInput *input, const PageFlameOptions *options, PageTree **ret) {
    _cleanup_(page_tree_freep) PageTree *tree = NULL;
    int r;

    r = page_tree_new(options && options->by_address, &tree);
    if (r >= 0 && options && options->before)
        r = page_tree_add(tree, options->before, true);
    if (r >= 0)
        r = page_tree_add(tree, input, false);
    if (r >= 0)
        r = page_tree_sort(tree);
    if (r >= 0)
        *ret = TAKE_PTR(tree);
    return r;
}
