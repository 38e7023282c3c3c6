/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "profile/intake/builder-private.h"

/* The labels and cells of the profile that is being made, each once. */

int builder_new_profile(const ProfileBuilder *builder, Profile **ret) {
    _cleanup_(profile_freep) Profile *profile = calloc(1, sizeof(*profile));
    int r;

    if (!profile)
        return -ENOMEM;
    profile->keys = builder->options.keys;
    profile->bucket_ns = builder->options.bucket_ns;
    profile->first_ns = 1;
    profile->real_offset = builder->real_offset;
    profile->real_known = builder->has_clock;
    r = frame_table_new(&profile->frames);
    if (r >= 0)
        r = stack_tree_new(builder->options.stacks_max, &profile->stacks);
    if (r >= 0)
        r = text_set_new(&profile->texts);
    if (r >= 0)
        *ret = TAKE_PTR(profile);
    return r;
}

int builder_intern_label(ProfileBuilder *builder, const ProfileLabel *label, uint32_t *ret) {
    Profile *profile = builder->profile;
    uint64_t key =
        hash_bytes(builder->seed, (Bytes){.data = (const uint8_t *)label, .size = sizeof(*label)});
    ProfileLabel *row;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&builder->by_label, key, &probe)) > 0;)
        if (memcmp(&profile->labels[number - 1], label, sizeof(*label)) == 0) {
            *ret = number - 1;
            return 0;
        }
    if (!builder->may_exceed && (profile->n_labels >= builder->labels_max ||
                                 text_set_bytes(profile->texts) > TEXT_BYTES_MAX))
        return -ENOSPC;
    row = hash_index_append(&builder->by_label, key, &profile->labels);
    if (!row)
        return -ENOMEM;
    *row = *label;
    *ret = (uint32_t)profile->n_labels++;
    return 0;
}

int builder_add_cell(ProfileBuilder *builder, const ProfileCell *add) {
    Profile *profile = builder->profile;
    uint64_t key = (uint64_t)add->label << 32 | add->stack;
    ProfileCell *cell;
    uint32_t number;

    for (size_t probe = 0; (number = hash_index_next(&builder->by_cell, key, &probe)) > 0;) {
        cell = &profile->cells[number - 1];
        if (cell->label == add->label && cell->stack == add->stack)
            break;
    }
    if (number == 0) {
        if (profile->n_cells >= builder->cells_max && !builder->may_exceed)
            return -ENOSPC;
        cell = hash_index_append(&builder->by_cell, key, &profile->cells);
        if (!cell)
            return -ENOMEM;
        profile->n_cells++;
        *cell = (ProfileCell){.label = add->label, .stack = add->stack};
    }
    cell->samples += add->samples;
    cell->period += add->period;
    return 0;
}

int builder_add_other_frame(FrameTable *frames, uint32_t *ret) {
    static const char name[] = "[other]";
    FrameMapping mapping = {
        .kind = FRAME_OTHER,
        .dso = {.data = (const uint8_t *)name, .size = sizeof(name) - 1},
    };
    Frame frame = {};
    int r = frame_table_add_mapping(frames, &mapping, &frame.mapping);

    return r < 0 ? r : frame_table_add(frames, &frame, ret);
}
