/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/row/profile-row.h"

#include <errno.h>

#include "profile/row/row-part.h"
#include "util/array.h"
#include "util/text.h"

/*
 * One pass over the cells of a profile. Labels and places with equal values get one number each (a
 * part), and a row is a pair of these, so that the pass only hashes numbers. A row that is several
 * times in a stack counts once, which `seen` remembers.
 */

typedef struct RowMark {
    uint64_t key;  /* the parts of its label and place */
    uint32_t seen; /* the last cell that counted here, plus one */
} RowMark;

struct RowIndex {
    RowPart labels, places;
    RowMark *marks; /* of each row */
    HashIndex rows;
};

RowTable *row_table_free(RowTable *table) {
    if (!table)
        return NULL;
    if (table->index) {
        row_part_done(&table->index->labels);
        row_part_done(&table->index->places);
        hash_index_done(&table->index->rows);
        free(table->index->marks);
    }
    free(table->index);
    free(table->rows);
    free(table->order);
    free(table);
    return NULL;
}

static uint64_t row_table_key(const RowTable *table, uint32_t label, uint32_t place) {
    const struct RowIndex *index = table->index;

    return (uint64_t)index->labels.numbers[label] << 32 |
           (place == UINT32_MAX ? UINT32_MAX : index->places.numbers[place]);
}

static uint32_t row_table_find_key(const RowTable *table, uint64_t key) {
    const struct RowIndex *index = table->index;
    size_t probe = 0;
    uint32_t number;

    while ((number = hash_index_next(&index->rows, key, &probe)) > 0)
        if (index->marks[number - 1].key == key)
            return number - 1;
    return UINT32_MAX;
}

uint32_t row_table_find(const RowTable *table, uint32_t label, uint32_t place) {
    return row_table_find_key(table, row_table_key(table, label, place));
}

static int row_table_add_row(RowTable *table, uint64_t key, uint32_t label, uint32_t place) {
    RowMark *mark = hash_index_append(&table->index->rows, key, &table->index->marks);
    ProfileRow *row = mark ? array_grow(&table->rows, &table->n) : NULL;

    if (!row)
        return -ENOMEM;
    mark->key = key;
    row->label = label;
    row->place = place;
    return 0;
}

/* Counts a cell in the row of one of its places. */
static int row_table_count(RowTable *table, const ProfileCell *cell, uint32_t place, bool is_self,
                           uint32_t number) {
    uint64_t key = row_table_key(table, cell->label, place);
    uint32_t found = row_table_find_key(table, key);
    ProfileRow *row;

    if (found == UINT32_MAX && row_table_add_row(table, key, cell->label, place) < 0)
        return -ENOMEM;
    if (found == UINT32_MAX)
        found = (uint32_t)table->n - 1;
    row = &table->rows[found];
    if (is_self) {
        row->samples += cell->samples;
        row->period += cell->period;
    }
    if (table->index->marks[found].seen == number)
        return 0;
    table->index->marks[found].seen = number;
    row->total_samples += cell->samples;
    row->total_period += cell->period;
    return 0;
}

static int row_table_count_cell(RowTable *table, size_t i, bool by_frame, Buffer *buffer) {
    const ProfileCell *cell = &table->profile->cells[i];
    const uint32_t *places;
    uint32_t number = (uint32_t)i + 1;
    size_t n;
    int r;

    table->samples += cell->samples;
    table->period += cell->period;
    if (!by_frame)
        return row_table_count(table, cell, UINT32_MAX, true, number);
    r = row_table_places(table, cell->stack, buffer);
    if (r < 0)
        return r;
    places = (const void *)buffer->data;
    n = buffer->size / sizeof(*places);
    if (n == 0)
        return row_table_count(table, cell, UINT32_MAX, true, number);
    for (size_t k = 0; k < n && r == 0; k++)
        r = row_table_count(table, cell, places[k], k == 0, number);
    return r;
}

static int row_table_fill(RowTable *table) {
    const Profile *p = table->profile;
    bool by_frame = row_keys_have_frame(&table->keys);
    _cleanup_(buffer_done) Buffer places = {};
    int r = 0;

    for (size_t i = 0; i < p->n_cells && r == 0; i++)
        if (table->event == PROFILE_NONE ||
            p->labels[p->cells[i].label].values[PROFILE_EVENT] == table->event)
            r = row_table_count_cell(table, i, by_frame, &places);
    return r;
}

int row_table_new(const Profile *profile, const FrameNames *names, const RowKeys *keys,
                  uint32_t event, RowTable **ret) {
    _cleanup_(row_table_freep) RowTable *table = calloc(1, sizeof(*table));
    int r;

    if (!table)
        return -ENOMEM;
    *table = (RowTable){.profile = profile, .names = names, .keys = *keys, .event = event};
    table->index = calloc(1, sizeof(*table->index));
    if (!table->index)
        return -ENOMEM;
    r = row_part_labels(&table->index->labels, profile, keys);
    if (r == 0)
        r = row_part_places(&table->index->places, profile, names, keys);
    if (r == 0)
        r = row_table_fill(table);
    if (r == 0)
        *ret = TAKE_PTR(table);
    return r;
}

int row_table_places(const RowTable *table, uint32_t stack, Buffer *ret) {
    const StackTree *stacks = table->profile->stacks;

    buffer_clear(ret);
    while (stack != STACK_ROOT) {
        const StackNode *node = stack_tree_node(stacks, stack);
        uint32_t first = node->frame, n = 1;

        if (table->names) {
            first = table->names->names[node->frame].first;
            n = table->names->names[node->frame].n;
        }
        for (uint32_t i = 0; i < n; i++) {
            uint32_t place = first + i;

            buffer_append(ret, &place, sizeof(place));
        }
        stack = node->parent;
    }
    return buffer_error(ret);
}

uint32_t row_table_function(const RowTable *table, uint32_t place) {
    return table->names && place != UINT32_MAX ? table->names->lines[place].function : 0;
}

static void row_table_put_line(const RowTable *table, uint32_t place, Buffer *out) {
    const FrameLine *line = table->names ? &table->names->lines[place] : NULL;
    Bytes file;

    if (!line || line->file == 0)
        return;
    file = text_set_get(table->names->texts, line->file);
    buffer_append(out, file.data, file.size);
    text_printf(out, ":%u", line->line);
}

static void row_table_put_place(const RowTable *table, uint32_t place, unsigned key, Buffer *out) {
    const FrameTable *frames = table->profile->frames;
    Bytes text = {};

    if (place == UINT32_MAX) {
        text_puts(out, key == ROW_SRCLINE ? "" : "[unknown]");
        return;
    }
    if (key == ROW_DSO) {
        uint32_t frame = row_part_frame(&table->index->places, place);

        text = frame_table_mapping(frames, frame_table_frame(frames, frame)->mapping)->dso;
    } else if (key == ROW_SYMBOL && table->names) {
        text = text_set_get(table->names->texts, table->names->lines[place].function);
    } else if (key == ROW_SRCLINE) {
        row_table_put_line(table, place, out);
    }
    buffer_append(out, text.data, text.size);
}

uint32_t row_table_number(const RowTable *table, const ProfileRow *row, unsigned key) {
    return table->profile->labels[row->label].values[key];
}

void row_table_put(const RowTable *table, const ProfileRow *row, unsigned key, Buffer *out) {
    const Profile *p = table->profile;
    uint32_t value;
    Bytes text;

    if (key >= PROFILE_KEYS) {
        row_table_put_place(table, row->place, key, out);
        return;
    }
    value = row_table_number(table, row, key);
    if (value == PROFILE_NONE)
        return;
    if (row_key_is_number(key)) {
        text_u64(out, value);
        return;
    }
    text = text_set_get(p->texts, key == PROFILE_EVENT ? p->events[value].name : value);
    buffer_append(out, text.data, text.size);
}
