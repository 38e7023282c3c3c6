/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/intake/builder-private.h"
#include "util/array.h"

/*
 * Makes room when a limit is reached: everything is numbered anew without the rarest. A node of the
 * tree stays if its subtree has enough samples, so that a stack that goes keeps its callers and
 * ends in FRAME_OTHER below them. The threshold is chosen so that a quarter of the nodes stay, and
 * there is a FRAME_OTHER for each of them at most: half of the room is free afterwards, and folding
 * costs a constant time for each node that was ever added. Which labels stay is chosen in
 * builder-fold-label.c; the others become one for each event, which has no other value.
 *
 * Frames, mappings and texts stay if something that stays needs them.
 */

typedef struct Fold {
    ProfileBuilder *builder;
    Profile *from;     /* the old profile; builder->profile has the new one meanwhile */
    uint64_t *weights; /* of subtrees, by node */
    uint64_t least;    /* the weight of a subtree that stays */
    uint32_t *nodes, *frames, *mappings, *labels; /* new numbers; UINT32_MAX: none yet */
    bool *labels_stay;
    BuilderScale scale; /* of their times */
    uint32_t other;     /* the frame */
} Fold;

static int builder_fold_weigh(Fold *fold) {
    const StackTree *tree = fold->from->stacks;
    uint32_t n = stack_tree_n_nodes(tree);

    fold->weights = calloc(n, sizeof(*fold->weights));
    if (!fold->weights)
        return -ENOMEM;
    for (size_t i = 0; i < fold->from->n_cells; i++)
        fold->weights[fold->from->cells[i].stack] += fold->from->cells[i].samples;
    for (uint32_t i = n - 1; i > 0; i--)
        fold->weights[stack_tree_node(tree, i)->parent] += fold->weights[i];
    return 0;
}

static int builder_fold_compare(const void *x, const void *y) {
    const uint64_t *a = x, *b = y;

    return *a < *b ? 1 : *a > *b ? -1 : 0;
}

/* The least weight such that at most `room` nodes have it or more. */
static int builder_fold_choose(Fold *fold, uint32_t room) {
    uint32_t n = stack_tree_n_nodes(fold->from->stacks);
    _cleanup_free_ uint64_t *sorted = NULL;

    fold->least = 1;
    if (n <= room)
        return 0;
    sorted = malloc(n * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, fold->weights, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), builder_fold_compare);
    fold->least = sorted[room] + 1;
    return 0;
}

static int builder_fold_text(Fold *fold, uint32_t old, uint32_t *ret) {
    *ret = old;
    return old == PROFILE_NONE ? 0
                               : text_set_add(fold->builder->profile->texts,
                                              text_set_get(fold->from->texts, old), ret);
}

static int builder_fold_label(Fold *fold, uint32_t old, uint32_t *ret) {
    static const ProfileKey texts[] = {PROFILE_COMM, PROFILE_CGROUP, PROFILE_UNIT,
                                       PROFILE_CONTAINER};
    ProfileLabel label = fold->from->labels[old];
    int r = 0;

    *ret = fold->labels[old];
    if (*ret != UINT32_MAX)
        return 0;
    label.values[PROFILE_TIME] = builder_label_scaled(&fold->scale, label.values[PROFILE_TIME]);
    if (!fold->labels_stay[old])
        for (unsigned key = 0; key < PROFILE_KEYS; key++)
            if (key != PROFILE_EVENT)
                label.values[key] = PROFILE_NONE;
    for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(texts); i++)
        r = builder_fold_text(fold, label.values[texts[i]], &label.values[texts[i]]);
    if (r >= 0)
        r = builder_intern_label(fold->builder, &label, ret);
    fold->labels[old] = *ret;
    return r;
}

static int builder_fold_frame(Fold *fold, uint32_t old, uint32_t *ret) {
    FrameTable *to = fold->builder->profile->frames;
    Frame frame = *frame_table_frame(fold->from->frames, old);
    uint32_t mapping = frame.mapping;
    int r = 0;

    *ret = fold->frames[old];
    if (*ret != UINT32_MAX)
        return 0;
    if (fold->mappings[mapping] == UINT32_MAX)
        r = frame_table_add_mapping(to, frame_table_mapping(fold->from->frames, mapping),
                                    &fold->mappings[mapping]);
    frame.mapping = fold->mappings[mapping];
    if (r >= 0)
        r = frame_table_add(to, &frame, ret);
    fold->frames[old] = *ret;
    return r;
}

/* Gives each node the new number of itself or of the FRAME_OTHER that it became. */
static int builder_fold_nodes(Fold *fold) {
    StackTree *to = fold->builder->profile->stacks;
    uint32_t n = stack_tree_n_nodes(fold->from->stacks);
    int r = 0;

    fold->nodes[STACK_ROOT] = STACK_ROOT;
    for (uint32_t i = 1; r >= 0 && i < n; i++) {
        const StackNode *node = stack_tree_node(fold->from->stacks, i);
        uint32_t frame = fold->other;

        if (fold->weights[i] < fold->least && fold->weights[node->parent] < fold->least &&
            node->parent != STACK_ROOT) {
            fold->nodes[i] = fold->nodes[node->parent];
            continue;
        }
        if (fold->weights[i] >= fold->least)
            r = builder_fold_frame(fold, node->frame, &frame);
        if (r >= 0)
            r = stack_tree_add(to, fold->nodes[node->parent], frame, &fold->nodes[i]);
    }
    return r;
}

static bool builder_fold_is_other(const Fold *fold, uint32_t stack) {
    const StackNode *node = stack_tree_node(fold->from->stacks, stack);
    const FrameTable *frames = fold->from->frames;

    return node->depth > 0 &&
           frame_table_mapping(frames, frame_table_frame(frames, node->frame)->mapping)->kind ==
               FRAME_OTHER;
}

/* Whether it is what a label became that did not stay. */
static bool builder_fold_label_is_other(const Fold *fold, const ProfileLabel *label) {
    if (!(fold->from->keys & ~profile_key_bit(PROFILE_EVENT)))
        return false;
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (key != PROFILE_EVENT && label->values[key] != PROFILE_NONE)
            return false;
    return true;
}

static int builder_fold_cells(Fold *fold) {
    Profile *to = fold->builder->profile;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < fold->from->n_cells; i++) {
        ProfileCell cell = fold->from->cells[i];

        if (fold->weights[cell.stack] < fold->least && !builder_fold_is_other(fold, cell.stack))
            to->folded += cell.samples;
        if (!fold->labels_stay[cell.label] &&
            !builder_fold_label_is_other(fold, &fold->from->labels[cell.label]))
            to->folded_labels += cell.samples;
        cell.stack = fold->nodes[cell.stack];
        r = builder_fold_label(fold, cell.label, &cell.label);
        if (r >= 0)
            r = builder_add_cell(fold->builder, &cell);
    }
    return r;
}

static int builder_fold_new_numbers(uint32_t **ret, size_t n) {
    *ret = malloc((n + 1) * sizeof(**ret));
    if (!*ret)
        return -ENOMEM;
    memset(*ret, 0xff, (n + 1) * sizeof(**ret));
    return 0;
}

static int builder_fold_allocate(Fold *fold) {
    const FrameTable *frames = fold->from->frames;
    int r = builder_fold_new_numbers(&fold->nodes, stack_tree_n_nodes(fold->from->stacks));

    if (r >= 0)
        r = builder_fold_new_numbers(&fold->frames, frame_table_n_frames(frames));
    if (r >= 0)
        r = builder_fold_new_numbers(&fold->mappings, frame_table_n_mappings(frames));
    return r < 0 ? r : builder_fold_new_numbers(&fold->labels, fold->from->n_labels);
}

static int builder_fold_events(Fold *fold) {
    Profile *to = fold->builder->profile;

    for (size_t i = 0; i < fold->from->n_events; i++) {
        ProfileEvent event = fold->from->events[i], *row;
        int r = builder_fold_text(fold, event.name, &event.name);

        if (r < 0)
            return r;
        row = hash_index_append(&fold->builder->by_event, event.name, &to->events);
        if (!row)
            return -ENOMEM;
        to->n_events++;
        *row = event;
    }
    return 0;
}

static int builder_fold_all(Fold *fold) {
    int r = builder_fold_weigh(fold);

    if (r >= 0)
        r = builder_fold_choose(fold, fold->builder->options.stacks_max / 4);
    if (r >= 0)
        r = builder_fold_allocate(fold);
    if (r >= 0)
        r = builder_add_other_frame(fold->builder->profile->frames, &fold->other);
    if (r >= 0)
        r = builder_fold_events(fold);
    if (r >= 0)
        r = builder_fold_nodes(fold);
    if (r >= 0)
        r = builder_fold_choose_labels(fold->builder, fold->from, fold->nodes, &fold->labels_stay,
                                       &fold->scale);
    if (r < 0)
        return r;
    builder_label_scale_times(&fold->scale, fold->builder->profile);
    return builder_fold_cells(fold);
}

static void builder_fold_done(Fold *fold) {
    free(fold->weights);
    free(fold->nodes);
    free(fold->frames);
    free(fold->mappings);
    free(fold->labels);
    free(fold->labels_stay);
}

/* The counts and times of a profile, without its tables. */
static void builder_fold_copy_totals(Profile *to, const Profile *from) {
    to->samples = from->samples;
    to->lost = from->lost;
    to->left_out = from->left_out;
    to->folded = from->folded;
    to->folded_labels = from->folded_labels;
    to->broken = from->broken;
    to->first_ns = from->first_ns;
    to->last_ns = from->last_ns;
    to->start_ns = from->start_ns;
    to->bucket_ns = from->bucket_ns;
    to->real_offset = from->real_offset;
    to->real_known = from->real_known;
}

int builder_fold(ProfileBuilder *builder) {
    HashIndex events = builder->by_event, labels = builder->by_label, cells = builder->by_cell;
    _cleanup_(builder_fold_done) Fold fold = {.builder = builder, .from = builder->profile};
    int r;

    r = builder_new_profile(builder, &builder->profile);
    if (r < 0)
        return r;
    builder->by_event = builder->by_label = builder->by_cell = (HashIndex){};
    builder_fold_copy_totals(builder->profile, fold.from);
    builder->may_exceed = true;
    r = builder_fold_all(&fold);
    builder->may_exceed = false;
    if (r < 0) {
        Profile *half = builder->profile;

        builder->profile = fold.from;
        fold.from = half;
        hash_index_done(&builder->by_event);
        hash_index_done(&builder->by_label);
        hash_index_done(&builder->by_cell);
        builder->by_event = events;
        builder->by_label = labels;
        builder->by_cell = cells;
    } else {
        hash_index_done(&events);
        hash_index_done(&labels);
        hash_index_done(&cells);
    }
    profile_free(fold.from);
    builder_forget_lookups(builder);
    return r;
}
