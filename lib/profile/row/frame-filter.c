/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/frame-filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>

/*
 * Each frame is matched once. A stack has a match if its own frame or its parent's stack has one,
 * and parents come first, so one pass over the tree answers for all stacks.
 */

static bool filter_matches(const char *const *patterns, size_t n, const char *text) {
    for (size_t i = 0; i < n; i++)
        if (fnmatch(patterns[i], text, 0) == 0)
            return true;
    return n == 0;
}

static bool filter_matches_symbol(const FrameFilter *filter, const FrameNames *names,
                                  uint32_t frame) {
    const FrameName *name;

    if (filter->n_symbols == 0)
        return true;
    if (!names || frame >= names->n_names)
        return false;
    name = &names->names[frame];
    for (uint32_t i = 0; i < name->n; i++) {
        Bytes text = text_set_get(names->texts, names->lines[name->first + i].function);

        if (filter_matches(filter->symbols, filter->n_symbols, (const char *)text.data))
            return true;
    }
    return false;
}

static bool *filter_frames(const Profile *profile, const FrameNames *names,
                           const FrameFilter *filter) {
    uint32_t n = frame_table_n_frames(profile->frames);
    bool *wanted = calloc((size_t)n + 1, sizeof(*wanted));

    for (uint32_t i = 0; wanted && i < n; i++) {
        uint32_t mapping = frame_table_frame(profile->frames, i)->mapping;
        Bytes dso = frame_table_mapping(profile->frames, mapping)->dso;

        wanted[i] = filter_matches(filter->dsos, filter->n_dsos, (const char *)dso.data) &&
                    filter_matches_symbol(filter, names, i);
    }
    return wanted;
}

static void filter_cells(Profile *profile, const bool *stacks) {
    size_t n = 0;

    for (size_t i = 0; i < profile->n_cells; i++) {
        ProfileCell *cell = &profile->cells[i];
        uint32_t event = profile->labels[cell->label].values[PROFILE_EVENT];

        if (stacks[cell->stack]) {
            profile->cells[n++] = *cell;
            continue;
        }
        profile->left_out += cell->samples;
        profile->samples -= cell->samples;
        if (event == PROFILE_NONE && profile->n_events == 1)
            event = 0;
        if (event == PROFILE_NONE)
            continue;
        profile->events[event].samples -= cell->samples;
        profile->events[event].period -= cell->period;
    }
    profile->n_cells = n;
}

int frame_filter_apply(Profile *profile, const FrameNames *names, const FrameFilter *filter) {
    uint32_t n = stack_tree_n_nodes(profile->stacks);
    _cleanup_free_ bool *frames = NULL, *stacks = NULL;

    if (filter->n_dsos + filter->n_symbols == 0)
        return 0;
    frames = filter_frames(profile, names, filter);
    stacks = calloc(n, sizeof(*stacks));
    if (!frames || !stacks)
        return -ENOMEM;
    for (uint32_t i = 1; i < n; i++) {
        const StackNode *node = stack_tree_node(profile->stacks, i);

        stacks[i] = frames[node->frame] || (filter->anywhere && stacks[node->parent]);
    }
    filter_cells(profile, stacks);
    return 0;
}
