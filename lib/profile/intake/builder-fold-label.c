/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/intake/builder-private.h"
#include "util/array.h"

/*
 * Which labels stay when room is made. Spans of time become longer first, so that labels which
 * differ only in their time become one. Only where that is not enough, or time is not kept apart,
 * the heaviest stay and the others lose their values.
 */

/* One label of the new profile, of labels that only differ in spans that become one. */
typedef struct FoldClass {
    uint32_t number; /* in the order of classes */
    uint32_t label;  /* one of its labels in the old profile */
    uint64_t cells, samples;
} FoldClass;

typedef struct FoldChoice {
    const ProfileBuilder *builder;
    const Profile *from;
    const uint32_t *nodes; /* their new numbers */
    BuilderScale scale;
    uint32_t *order; /* labels, such that those of a class are neighbours at any scale */
    uint32_t *class_of;
    FoldClass *classes;
    uint64_t *cells; /* room to sort them */
    size_t n;        /* of classes */
} FoldChoice;

static_assert(PROFILE_TIME + 1 == PROFILE_KEYS, "the time is compared last");

static int builder_fold_compare_values(const ProfileLabel *a, const ProfileLabel *b) {
    return memcmp(a->values, b->values, sizeof(a->values[0]) * PROFILE_TIME);
}

static int builder_fold_compare_labels(const void *x, const void *y, void *arg) {
    const ProfileLabel *labels = arg, *a = &labels[*(const uint32_t *)x],
                       *b = &labels[*(const uint32_t *)y];
    uint32_t time_a = a->values[PROFILE_TIME], time_b = b->values[PROFILE_TIME];

    return builder_fold_compare_values(a, b) ?: (time_a > time_b) - (time_a < time_b);
}

static int builder_fold_compare_cells(const void *x, const void *y) {
    const uint64_t *a = x, *b = y;

    return *a < *b ? -1 : *a > *b ? 1 : 0;
}

static int builder_fold_compare_classes(const void *x, const void *y) {
    const FoldClass *a = x, *b = y;

    return a->samples != b->samples ? (a->samples < b->samples ? 1 : -1)
                                    : (a->label < b->label ? -1 : 1);
}

static int builder_fold_choice_init(FoldChoice *choice) {
    size_t n = choice->from->n_labels;

    choice->order = calloc(n + 1, sizeof(*choice->order));
    choice->class_of = calloc(n + 1, sizeof(*choice->class_of));
    choice->classes = calloc(n + 1, sizeof(*choice->classes));
    choice->cells = calloc(choice->from->n_cells + 1, sizeof(*choice->cells));
    if (!choice->order || !choice->class_of || !choice->classes || !choice->cells)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        choice->order[i] = (uint32_t)i;
    if (choice->from->keys & profile_key_bit(PROFILE_TIME))
        qsort_r(choice->order, n, sizeof(*choice->order), builder_fold_compare_labels,
                choice->from->labels);
    return 0;
}

static void builder_fold_choice_done(FoldChoice *choice) {
    free(choice->order);
    free(choice->class_of);
    free(choice->classes);
    free(choice->cells);
}

static bool builder_fold_is_same(const FoldChoice *choice, uint32_t a, uint32_t b) {
    const ProfileLabel *x = &choice->from->labels[a], *y = &choice->from->labels[b];

    return builder_label_scaled(&choice->scale, x->values[PROFILE_TIME]) ==
               builder_label_scaled(&choice->scale, y->values[PROFILE_TIME]) &&
           builder_fold_compare_values(x, y) == 0;
}

static void builder_fold_classify(FoldChoice *choice) {
    choice->n = 0;
    for (size_t i = 0; i < choice->from->n_labels; i++) {
        uint32_t label = choice->order[i];

        if (i == 0 || !builder_fold_is_same(choice, choice->order[i - 1], label)) {
            choice->classes[choice->n] = (FoldClass){.number = (uint32_t)choice->n, .label = label};
            choice->n++;
        }
        choice->class_of[label] = (uint32_t)choice->n - 1;
    }
}

/* Counts the samples of classes, and the cells that they will have. */
static void builder_fold_count(FoldChoice *choice) {
    size_t n = choice->from->n_cells;
    uint64_t *cells = choice->cells;

    for (size_t i = 0; i < n; i++) {
        const ProfileCell *cell = &choice->from->cells[i];
        uint32_t number = choice->class_of[cell->label];

        cells[i] = (uint64_t)number << 32 | choice->nodes[cell->stack];
        choice->classes[number].samples += cell->samples;
    }
    qsort(cells, n, sizeof(*cells), builder_fold_compare_cells);
    for (size_t i = 0; i < n; i++)
        choice->classes[cells[i] >> 32].cells += i == 0 || cells[i] != cells[i - 1];
}

static uint64_t builder_fold_text_bytes(const Profile *from, uint32_t label) {
    static const ProfileKey keys[] = {PROFILE_COMM, PROFILE_CGROUP, PROFILE_UNIT,
                                      PROFILE_CONTAINER};
    uint64_t bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        uint32_t text = from->labels[label].values[keys[i]];

        bytes += text != PROFILE_NONE ? text_set_get(from->texts, text).size + 1 : 0;
    }
    return bytes;
}

/* How many of the classes, in their order, need half of each limit at most; at least one. */
static size_t builder_fold_fitting(const FoldChoice *choice) {
    const ProfileBuilder *builder = choice->builder;
    size_t most = MIN(choice->n, builder->labels_max / 2);
    uint64_t cells = 0, bytes = 0;

    for (size_t i = 0; i < most; i++) {
        cells += choice->classes[i].cells;
        bytes += builder_fold_text_bytes(choice->from, choice->classes[i].label);
        if (i > 0 && (cells > builder->cells_max / 2 || bytes > TEXT_BYTES_MAX / 2))
            return i;
    }
    return most;
}

/* Makes spans longer until all classes fit. False: they never do. */
static bool builder_fold_lengthen_spans(FoldChoice *choice) {
    bool has_time = choice->from->keys & profile_key_bit(PROFILE_TIME);

    do {
        builder_fold_classify(choice);
        if (choice->n > choice->builder->labels_max / 2)
            continue;
        builder_fold_count(choice);
        if (builder_fold_fitting(choice) == choice->n)
            return true;
    } while (has_time && builder_label_lengthen_spans(choice->from, &choice->scale));
    return false;
}

static int builder_fold_choose(FoldChoice *choice, bool *stay) {
    bool all = builder_fold_lengthen_spans(choice);
    _cleanup_free_ bool *stays = calloc(choice->n + 1, sizeof(*stays));
    size_t n = choice->n;

    if (!stays)
        return -ENOMEM;
    if (!all) {
        builder_fold_classify(choice);
        builder_fold_count(choice);
        qsort(choice->classes, choice->n, sizeof(*choice->classes), builder_fold_compare_classes);
        n = builder_fold_fitting(choice);
    }
    for (size_t i = 0; i < n; i++)
        stays[choice->classes[i].number] = true;
    for (size_t i = 0; i < choice->from->n_labels; i++)
        stay[i] = stays[choice->class_of[i]];
    return 0;
}

int builder_fold_choose_labels(const ProfileBuilder *builder, const Profile *from,
                               const uint32_t *nodes, bool **ret_stay, BuilderScale *ret_scale) {
    _cleanup_(builder_fold_choice_done) FoldChoice choice = {
        .builder = builder, .from = from, .nodes = nodes, .scale = {.factor = 1}};
    _cleanup_free_ bool *stay = calloc(from->n_labels + 1, sizeof(*stay));
    int r = stay ? builder_fold_choice_init(&choice) : -ENOMEM;

    if (r >= 0)
        r = builder_fold_choose(&choice, stay);
    if (r < 0)
        return r;
    *ret_stay = TAKE_PTR(stay);
    *ret_scale = choice.scale;
    return 0;
}
