/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "export/export-cell.h"
#include "export/export-format.h"
#include "export/export-function.h"
#include "export/export-group.h"
#include "export/export-output.h"
#include "util/fields.h"
#include "util/text.h"

/*
 * speedscope's own format: one list of frames for all, then a sampled profile for each event, with
 * a list of stacks and a list of their weights. It has no labels, so these are the outermost
 * frames, numbered behind the functions. Both lists of a profile are written from the same sorted
 * cells, one after the other, so nothing of them is held in memory.
 */

typedef struct SpeedscopeLabel {
    uint32_t key, value;
} SpeedscopeLabel;

typedef struct Speedscope {
    const ExportInput *input;
    ExportOutput output;
    Fields fields;
    ExportFunctions functions;
    ExportGroups events; /* a profile each */
    ExportCells cells;
    SpeedscopeLabel *labels; /* frames that stand for a label */
    HashIndex label_index;
    size_t n_labels;
    Buffer text, path;
} Speedscope;

static void speedscope_done(Speedscope *s) {
    export_output_done(&s->output);
    export_functions_done(&s->functions);
    export_groups_done(&s->events);
    export_cells_done(&s->cells);
    free(s->labels);
    hash_index_done(&s->label_index);
    buffer_done(&s->text);
    buffer_done(&s->path);
}

/* The number of the frame of a label plus one; 0: there is none. */
static uint32_t speedscope_find_label(const Speedscope *s, uint32_t key, uint32_t value) {
    size_t probe = 0;
    uint32_t number;

    while ((number = hash_index_next(&s->label_index, (uint64_t)key << 32 | value, &probe)) > 0)
        if (s->labels[number - 1].key == key && s->labels[number - 1].value == value)
            return (uint32_t)s->functions.n + number;
    return 0;
}

static int speedscope_add_labels(Speedscope *s, const ProfileLabel *label) {
    for (size_t i = 0; i < EXPORT_OUTER_KEYS; i++) {
        ProfileKey key = export_outer_keys[i];
        uint32_t value = label->values[key];
        SpeedscopeLabel *row;

        buffer_clear(&s->text);
        if (key == PROFILE_EVENT || speedscope_find_label(s, key, value) > 0 ||
            !export_label_text(s->input->profile, label, key, &s->text))
            continue;
        row = hash_index_append(&s->label_index, (uint64_t)key << 32 | value, &s->labels);
        if (!row)
            return -ENOMEM;
        *row = (SpeedscopeLabel){.key = key, .value = value};
        s->n_labels++;
    }
    return 0;
}

static void speedscope_put_frame(Speedscope *s, Bytes name, Bytes file) {
    fields_begin_object(&s->fields, NULL);
    fields_bytes(&s->fields, "name", name);
    if (file.size > 0)
        fields_bytes(&s->fields, "file", file);
    fields_end_object(&s->fields);
    (void)export_output_breathe(&s->output);
}

static void speedscope_put_frames(Speedscope *s) {
    const TextSet *texts = s->input->names->texts;

    fields_begin_object(&s->fields, "shared");
    fields_begin_array(&s->fields, "frames");
    for (size_t i = 0; i < s->functions.n; i++)
        speedscope_put_frame(s, text_set_get(texts, s->functions.items[i].name),
                             text_set_get(texts, s->functions.items[i].file));
    for (size_t i = 0; i < s->n_labels; i++) {
        ProfileLabel label;

        label.values[s->labels[i].key] = s->labels[i].value;
        buffer_clear(&s->text);
        (void)export_label_text(s->input->profile, &label, s->labels[i].key, &s->text);
        speedscope_put_frame(s, buffer_bytes(&s->text), (Bytes){});
    }
    fields_end_array(&s->fields);
    fields_end_object(&s->fields);
}

static void speedscope_put_stack(Speedscope *s, const ExportCell *cell) {
    const Profile *profile = s->input->profile;
    const ProfileLabel *label = export_cell_label(s->input, cell);

    fields_begin_array(&s->fields, NULL);
    for (size_t i = 0; i < EXPORT_OUTER_KEYS; i++) {
        uint32_t key = export_outer_keys[i];
        uint32_t number = speedscope_find_label(s, key, label->values[key]);

        if (number > 0)
            fields_u64(&s->fields, NULL, number - 1);
    }
    buffer_clear(&s->path);
    for (uint32_t at = export_cell(s->input, cell)->stack; at != STACK_ROOT;) {
        const StackNode *node = stack_tree_node(profile->stacks, at);
        const FrameName *name = &s->input->names->names[node->frame];

        for (uint32_t i = 0; i < name->n; i++)
            buffer_u32(&s->path, s->functions.of_line[name->first + i], false);
        at = node->parent;
    }
    for (size_t i = s->path.size; i > 0; i -= sizeof(uint32_t))
        fields_u64(&s->fields, NULL, load_u32(s->path.data + i - sizeof(uint32_t), false));
    fields_end_array(&s->fields);
    if (s->path.error)
        s->output.error = s->path.error;
}

static void speedscope_put_head(Speedscope *s, uint32_t group, uint64_t total) {
    const ProfileLabel *label = &s->events.items[group];
    const ProfileEvent *event = export_event(s->input, label->values[PROFILE_EVENT]);

    fields_str(&s->fields, "type", "sampled");
    if (event)
        fields_bytes(&s->fields, "name", text_set_get(s->input->profile->texts, event->name));
    else
        fields_str(&s->fields, "name", "all events");
    fields_str(&s->fields, "unit",
               s->input->by_period && event && event->is_time ? "nanoseconds" : "none");
    fields_u64(&s->fields, "startValue", 0);
    fields_u64(&s->fields, "endValue", total);
}

/* Cells first…last - 1 are those of one event. */
static void speedscope_put_profile(Speedscope *s, size_t first, size_t last) {
    const ExportCell *cells = s->cells.items;
    uint64_t total = 0;

    for (size_t i = first; i < last; i++)
        total += export_cell_weight(s->input, &cells[i]);
    fields_begin_object(&s->fields, NULL);
    speedscope_put_head(s, export_cell_group(&cells[first]), total);
    fields_begin_array(&s->fields, "samples");
    for (size_t i = first; i < last && s->output.error == 0; i++) {
        speedscope_put_stack(s, &cells[i]);
        (void)export_output_breathe(&s->output);
    }
    fields_end_array(&s->fields);
    fields_begin_array(&s->fields, "weights");
    for (size_t i = first; i < last && s->output.error == 0; i++) {
        fields_u64(&s->fields, NULL, export_cell_weight(s->input, &cells[i]));
        (void)export_output_breathe(&s->output);
    }
    fields_end_array(&s->fields);
    fields_end_object(&s->fields);
}

static void speedscope_put(Speedscope *s) {
    fields_begin_object(&s->fields, NULL);
    fields_str(&s->fields, "$schema", "https://www.speedscope.app/file-format-schema.json");
    fields_str(&s->fields, "exporter", "profd");
    if (s->input->title)
        fields_str(&s->fields, "name", s->input->title);
    speedscope_put_frames(s);
    fields_begin_array(&s->fields, "profiles");
    for (size_t i = 0, last; i < s->cells.n; i = last) {
        for (last = i + 1; last < s->cells.n && export_cell_group(&s->cells.items[last]) ==
                                                    export_cell_group(&s->cells.items[i]);)
            last++;
        speedscope_put_profile(s, i, last);
    }
    fields_end_array(&s->fields);
    fields_end_object(&s->fields);
    text_putc(&s->output.buffer, '\n');
}

int export_speedscope(const ExportInput *input, ExportSink sink, void *arg) {
    _cleanup_(speedscope_done)
        Speedscope s = {.input = input, .output = {.sink = sink, .arg = arg}};
    int r = export_functions_fill(&s.functions, input, EXPORT_APART_BY_FILE);

    s.fields = fields_to(&s.output.buffer, FIELDS_JSON);
    if (r == 0)
        r = export_groups_fill(&s.events, input->profile, profile_key_bit(PROFILE_EVENT));
    if (r == 0)
        r = export_cells_fill(&s.cells, input, s.events.of_label);
    for (size_t i = 0; i < s.cells.n && r == 0; i++)
        r = speedscope_add_labels(&s, export_cell_label(input, &s.cells.items[i]));
    if (r < 0)
        return r;
    speedscope_put(&s);
    return export_output_flush(&s.output);
}
