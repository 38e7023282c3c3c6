/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/row-part.h"

#include <errno.h>

/*
 * The values of a label or place become a short array of numbers, and equal arrays get one number.
 * Names of files come from many mappings, so they are interned here.
 */

enum { VALUES_MAX = PROFILE_KEYS };

typedef struct PartValues {
    uint32_t items[VALUES_MAX];
} PartValues;

typedef struct PartSet {
    uint64_t seed;      /* of hashes */
    PartValues *values; /* of each number */
    HashIndex index;
} PartSet;

void row_part_done(RowPart *part) {
    free(part->numbers);
    free(part->frames);
}

static void row_part_set_done(PartSet *set) {
    free(set->values);
    hash_index_done(&set->index);
}

static int row_part_set_add(PartSet *set, const PartValues *values, uint32_t *ret) {
    uint64_t key = hash_bytes(set->seed, (Bytes){(const uint8_t *)values, sizeof(*values)});
    PartValues *added;
    size_t probe = 0;
    uint32_t number;

    while ((number = hash_index_next(&set->index, key, &probe)) > 0)
        if (memcmp(&set->values[number - 1], values, sizeof(*values)) == 0) {
            *ret = number - 1;
            return 0;
        }
    added = hash_index_append(&set->index, key, &set->values);
    if (!added)
        return -ENOMEM;
    *added = *values;
    *ret = (uint32_t)set->index.n - 1;
    return 0;
}

int row_part_labels(RowPart *part, const Profile *profile, const RowKeys *keys) {
    _cleanup_(row_part_set_done) PartSet set = {.seed = hash_seed()};
    int r = 0;

    part->numbers = calloc(profile->n_labels + 1, sizeof(*part->numbers));
    if (!part->numbers)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_labels && r == 0; i++) {
        PartValues values = {};

        for (size_t k = 0; k < keys->n; k++)
            if (keys->items[k] < PROFILE_KEYS)
                values.items[keys->items[k]] = profile->labels[i].values[keys->items[k]];
        r = row_part_set_add(&set, &values, &part->numbers[i]);
    }
    return r;
}

/* The number of the name of each mapping's file. */
static int row_part_intern_dsos(const FrameTable *frames, uint32_t **ret) {
    _cleanup_(text_set_freep) TextSet *texts = NULL;
    uint32_t n = frame_table_n_mappings(frames);
    _cleanup_free_ uint32_t *dsos = calloc((size_t)n + 1, sizeof(*dsos));
    int r = dsos ? text_set_new(&texts) : -ENOMEM;

    for (uint32_t i = 0; i < n && r == 0; i++)
        r = text_set_add(texts, frame_table_mapping(frames, i)->dso, &dsos[i]);
    if (r == 0)
        *ret = TAKE_PTR(dsos);
    return r;
}

static int row_part_find_frames(RowPart *part, const FrameNames *names) {
    part->frames = calloc(names->n_lines + 1, sizeof(*part->frames));
    if (!part->frames)
        return -ENOMEM;
    for (size_t frame = 0; frame < names->n_names; frame++)
        for (uint32_t i = 0; i < names->names[frame].n; i++)
            part->frames[names->names[frame].first + i] = (uint32_t)frame;
    return 0;
}

static PartValues row_part_values(const FrameNames *names, const RowKeys *keys, size_t place,
                                  uint32_t dso) {
    enum { DSO, FUNCTION, FILE_NAME, LINE };
    const FrameLine *line = names ? &names->lines[place] : NULL;
    PartValues values = {};

    if (row_keys_hold(keys, ROW_DSO))
        values.items[DSO] = dso;
    if (line && row_keys_hold(keys, ROW_SYMBOL))
        values.items[FUNCTION] = line->function;
    if (line && row_keys_hold(keys, ROW_SRCLINE)) {
        values.items[FILE_NAME] = line->file;
        values.items[LINE] = line->line;
    }
    return values;
}

int row_part_places(RowPart *part, const Profile *profile, const FrameNames *names,
                    const RowKeys *keys) {
    const FrameTable *frames = profile->frames;
    size_t n = names ? names->n_lines : frame_table_n_frames(frames);
    _cleanup_(row_part_set_done) PartSet set = {.seed = hash_seed()};
    _cleanup_free_ uint32_t *dsos = NULL;
    int r = names ? row_part_find_frames(part, names) : 0;

    if (r == 0)
        r = row_part_intern_dsos(frames, &dsos);
    if (r < 0)
        return r;
    part->numbers = calloc(n + 1, sizeof(*part->numbers));
    if (!part->numbers)
        return -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        uint32_t frame = row_part_frame(part, (uint32_t)i);
        PartValues values =
            row_part_values(names, keys, i, dsos[frame_table_frame(frames, frame)->mapping]);

        r = row_part_set_add(&set, &values, &part->numbers[i]);
    }
    return r;
}
