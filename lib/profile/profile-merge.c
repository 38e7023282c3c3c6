/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/profile-merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/buffer.h"

/*
 * Numbers of one profile become numbers of another through maps, which are filled as cells need
 * them: what no cell refers to is not carried over, so that merging also sorts out what is no
 * longer used.
 */

enum { UNMAPPED = UINT32_MAX };

typedef struct MergeMaps {
    ProfileMerge *merge;
    const Profile *from;
    uint32_t *mappings, *frames, *stacks, *texts, *events, *labels;
    Buffer path; /* nodes that wait for their callers */
} MergeMaps;

int profile_merge_init(ProfileMerge *merge, unsigned keys, uint32_t stacks_max) {
    Profile *into = calloc(1, sizeof(*into));
    int r = into ? frame_table_new(&into->frames) : -ENOMEM;

    *merge = (ProfileMerge){.into = into};
    if (r == 0)
        r = stack_tree_new(stacks_max, &into->stacks);
    if (r == 0)
        r = text_set_new(&into->texts);
    if (r < 0) {
        profile_merge_done(merge);
        return r;
    }
    into->keys = keys;
    into->first_ns = UINT64_MAX;
    return 0;
}

void profile_merge_done(ProfileMerge *merge) {
    merge->into = profile_free(merge->into);
    hash_index_done(&merge->labels);
}

static uint32_t *profile_merge_map_new(size_t n) {
    uint32_t *map = malloc((n + 1) * sizeof(*map));

    if (map)
        memset(map, 0xff, (n + 1) * sizeof(*map));
    return map;
}

static void profile_merge_maps_done(MergeMaps *maps) {
    free(maps->mappings);
    free(maps->frames);
    free(maps->stacks);
    free(maps->texts);
    free(maps->events);
    free(maps->labels);
    buffer_done(&maps->path);
}

static int profile_merge_maps_init(MergeMaps *maps) {
    const Profile *from = maps->from;

    maps->mappings = profile_merge_map_new(frame_table_n_mappings(from->frames));
    maps->frames = profile_merge_map_new(frame_table_n_frames(from->frames));
    maps->stacks = profile_merge_map_new(stack_tree_n_nodes(from->stacks));
    maps->texts = profile_merge_map_new(text_set_count(from->texts));
    maps->events = profile_merge_map_new(from->n_events);
    maps->labels = profile_merge_map_new(from->n_labels);
    return maps->mappings && maps->frames && maps->stacks && maps->texts && maps->events &&
                   maps->labels
               ? 0
               : -ENOMEM;
}

static int profile_merge_text(MergeMaps *maps, uint32_t number, uint32_t *ret) {
    int r = 0;

    if (maps->texts[number] == UNMAPPED)
        r = text_set_add(maps->merge->into->texts, text_set_get(maps->from->texts, number),
                         &maps->texts[number]);
    *ret = maps->texts[number];
    return r;
}

static int profile_merge_frame(MergeMaps *maps, uint32_t number, uint32_t *ret) {
    Frame frame = *frame_table_frame(maps->from->frames, number);
    FrameTable *into = maps->merge->into->frames;
    int r = 0;

    if (maps->frames[number] == UNMAPPED) {
        if (maps->mappings[frame.mapping] == UNMAPPED)
            r = frame_table_add_mapping(into,
                                        frame_table_mapping(maps->from->frames, frame.mapping),
                                        &maps->mappings[frame.mapping]);
        frame.mapping = maps->mappings[frame.mapping];
        if (r == 0)
            r = frame_table_add(into, &frame, &maps->frames[number]);
    }
    *ret = maps->frames[number];
    return r;
}

static int profile_merge_stack(MergeMaps *maps, uint32_t number, uint32_t *ret) {
    const StackTree *from = maps->from->stacks;
    uint32_t frame, into;
    int r = 0;

    buffer_clear(&maps->path);
    maps->stacks[STACK_ROOT] = STACK_ROOT;
    for (uint32_t at = number; maps->stacks[at] == UNMAPPED; at = stack_tree_node(from, at)->parent)
        buffer_u32(&maps->path, at, false);
    if (buffer_error(&maps->path))
        return -ENOMEM;
    for (size_t i = maps->path.size; i > 0 && r == 0; i -= sizeof(uint32_t)) {
        uint32_t at = load_u32(maps->path.data + i - sizeof(uint32_t), false);
        const StackNode *node = stack_tree_node(from, at);

        r = profile_merge_frame(maps, node->frame, &frame);
        if (r == 0)
            r = stack_tree_add(maps->merge->into->stacks, maps->stacks[node->parent], frame, &into);
        if (r == 0)
            maps->stacks[at] = into;
    }
    *ret = maps->stacks[number];
    return r;
}

/* Events of one name are one event. */
static int profile_merge_event(MergeMaps *maps, uint32_t number, uint32_t *ret) {
    Profile *into = maps->merge->into;
    ProfileEvent event = maps->from->events[number], *added;
    int r = profile_merge_text(maps, event.name, &event.name);

    for (uint32_t i = 0; i < into->n_events && r == 0 && maps->events[number] == UNMAPPED; i++)
        if (into->events[i].name == event.name)
            maps->events[number] = i;
    if (r == 0 && maps->events[number] == UNMAPPED) {
        added = array_grow(&into->events, &into->n_events);
        if (!added)
            return -ENOMEM;
        event.samples = event.period = event.lost = 0;
        *added = event;
        maps->events[number] = (uint32_t)into->n_events - 1;
    }
    *ret = maps->events[number];
    return r;
}

static int profile_merge_label_values(MergeMaps *maps, ProfileLabel *label) {
    static const ProfileKey texts[] = {PROFILE_COMM, PROFILE_CGROUP, PROFILE_UNIT,
                                       PROFILE_CONTAINER};
    uint32_t *values = label->values;
    int r = 0;

    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (!(maps->merge->into->keys & profile_key_bit(key)))
            values[key] = PROFILE_NONE;
    if (values[PROFILE_EVENT] != PROFILE_NONE)
        r = profile_merge_event(maps, values[PROFILE_EVENT], &values[PROFILE_EVENT]);
    for (size_t i = 0; i < ARRAY_SIZE(texts) && r == 0; i++)
        if (values[texts[i]] != PROFILE_NONE)
            r = profile_merge_text(maps, values[texts[i]], &values[texts[i]]);
    return r;
}

static int profile_merge_label(MergeMaps *maps, uint32_t number, uint32_t *ret) {
    ProfileMerge *merge = maps->merge;
    ProfileLabel label = maps->from->labels[number], *added;
    uint32_t *map = &maps->labels[number], found;
    size_t probe = 0;
    uint64_t key;
    int r = 0;

    if (*map == UNMAPPED)
        r = profile_merge_label_values(maps, &label);
    key = hash_bytes(0, (Bytes){.data = (const uint8_t *)&label, .size = sizeof(label)});
    while (r == 0 && *map == UNMAPPED && (found = hash_index_next(&merge->labels, key, &probe)) > 0)
        if (memcmp(&merge->into->labels[found - 1], &label, sizeof(label)) == 0)
            *map = found - 1;
    if (r == 0 && *map == UNMAPPED) {
        added = hash_index_append(&merge->labels, key, &merge->into->labels);
        if (!added)
            return -ENOMEM;
        *added = label;
        *map = (uint32_t)merge->into->n_labels++;
    }
    *ret = *map;
    return r;
}

int profile_merge_cells(ProfileMerge *merge, const Profile *from, const ProfileCell *cells,
                        size_t n, ProfileCell **ret) {
    _cleanup_(profile_merge_maps_done) MergeMaps maps = {.merge = merge, .from = from};
    _cleanup_free_ ProfileCell *made = calloc(n + 1, sizeof(*made));
    int r = made ? profile_merge_maps_init(&maps) : -ENOMEM;

    for (size_t i = 0; i < n && r == 0; i++) {
        made[i] = cells[i];
        r = profile_merge_label(&maps, cells[i].label, &made[i].label);
        if (r == 0)
            r = profile_merge_stack(&maps, cells[i].stack, &made[i].stack);
    }
    if (r < 0)
        return r;
    *ret = TAKE_PTR(made);
    return 0;
}

static int profile_merge_compare(const void *a, const void *b) {
    const ProfileCell *x = a, *y = b;

    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return x->stack < y->stack ? -1 : x->stack > y->stack;
}

size_t profile_cells_unite(ProfileCell *cells, size_t n) {
    size_t kept = 0;

    if (n == 0)
        return 0;
    qsort(cells, n, sizeof(*cells), profile_merge_compare);
    for (size_t i = 1; i < n; i++)
        if (profile_merge_compare(&cells[kept], &cells[i]) == 0) {
            cells[kept].samples += cells[i].samples;
            cells[kept].period += cells[i].period;
        } else
            cells[++kept] = cells[i];
    return kept + 1;
}
