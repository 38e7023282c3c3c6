/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/pprof-part.h"

#include <errno.h>
#include <stdlib.h>

#include "encode/protobuf.h"
#include "export/export-format.h"
#include "export/export-group.h"
#include "export/pprof-state.h"
#include "util/text.h"

/*
 * pprof's profile.proto, compressed by gzip. A sample has a count, and for each event the sum of
 * its periods: one column where one event is exported, several for all. Counts come first and
 * values second, as readers expect of CPU profiles. Messages are written as they come, the tables
 * of a profile in between the samples that need them, for protocol buffers do not care.
 */

enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_STR = 2,
    LABEL_NUM = 3,
    LABEL_NUM_UNIT = 4,
};

static const char *const pprof_keys[PROFILE_KEYS] = {
    [PROFILE_COMM] = "comm",
    [PROFILE_PID] = "pid",
    [PROFILE_TID] = "tid",
    [PROFILE_CPU] = "cpu",
    [PROFILE_CGROUP] = "cgroup",
    [PROFILE_UNIT] = "unit",
    [PROFILE_CONTAINER] = "container",
};

typedef struct PprofLabels {
    uint32_t keys[PROFILE_KEYS]; /* strings */
} PprofLabels;

Pprof *pprof_free(Pprof *p) {
    if (!p)
        return NULL;
    export_output_done(&p->output);
    gzip_free(p->gzip);
    export_functions_done(&p->functions);
    free(p->mappings);
    free(p->location_ids);
    free(p->function_ids);
    free(p->name_strings);
    free(p->profile_strings);
    free(p->event_columns);
    free(p->values);
    free(p->rounds);
    buffer_done(&p->touched);
    buffer_done(&p->text);
    free(p);
    return NULL;
}

static int pprof_compress(const void *data, size_t size, void *arg) {
    Pprof *p = arg;

    return gzip_write(p->gzip, data, size);
}

static int pprof_allocate(Pprof *p) {
    const Profile *profile = p->input.profile;
    uint32_t n_mappings = frame_table_n_mappings(profile->frames);

    p->location_ids = calloc((size_t)frame_table_n_frames(profile->frames) + 1, sizeof(uint32_t));
    p->function_ids = calloc(p->functions.n + 1, sizeof(uint32_t));
    p->name_strings = calloc((size_t)text_set_count(p->input.names->texts) + 1, sizeof(uint32_t));
    p->profile_strings = calloc((size_t)text_set_count(profile->texts) + 1, sizeof(uint32_t));
    p->rounds = calloc(stack_tree_n_nodes(profile->stacks), sizeof(uint32_t));
    p->mappings = calloc((size_t)n_mappings + 1, sizeof(*p->mappings));
    p->event_columns = calloc(profile->n_events + 1, sizeof(uint32_t));
    p->values = calloc(profile->n_events + 2, sizeof(uint64_t));
    return p->location_ids && p->function_ids && p->name_strings && p->profile_strings &&
                   p->rounds && p->mappings && p->event_columns && p->values
               ? 0
               : -ENOMEM;
}

int pprof_new(const ExportInput *input, Pprof **ret) {
    _cleanup_(pprof_freep) Pprof *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->input = *input;
    p->samples.factor = p->period.factor = input->weight;
    r = export_functions_fill(&p->functions, input, EXPORT_APART_BY_FILE);
    if (r == 0)
        r = pprof_allocate(p);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(p);
    return 0;
}

/* Forgets what was written for the part before. */
static int pprof_begin(Pprof *p, const PprofPart *part, ExportSink sink, void *arg) {
    bool is_plain = p->input.is_plain;

    p->gzip = gzip_free(p->gzip);
    buffer_clear(&p->output.buffer);
    p->output.error = 0;
    p->output.sink = is_plain ? sink : pprof_compress;
    p->output.arg = is_plain ? arg : p;
    pprof_reset_ids(p);
    p->n_strings = p->n_mappings = p->n_locations = p->n_functions = p->other_location = 0;
    p->label_part = EXPORT_NO_PART;
    p->input.event = part->event;
    p->input.since_ns = part->since_ns;
    p->input.until_ns = part->until_ns;
    pprof_survey_frames(p, part->cells, part->n);
    return is_plain ? 0 : gzip_new(GZIP_LEVEL_DEFAULT, sink, arg, &p->gzip);
}

static void pprof_put_type(Pprof *p, uint32_t field, uint32_t type, uint32_t unit) {
    size_t begun = protobuf_begin(&p->output.buffer, field);

    protobuf_u64(&p->output.buffer, VALUE_TYPE, type);
    protobuf_u64(&p->output.buffer, VALUE_UNIT, unit);
    protobuf_end(&p->output.buffer, begun);
}

static uint32_t pprof_event_string(Pprof *p, const ProfileEvent *event) {
    _cleanup_(buffer_done) Buffer plain = {};

    export_event_name(p->input.profile, event, &plain);
    if (buffer_error(&plain))
        p->output.error = -ENOMEM;
    return pprof_bytes_string(p, buffer_bytes(&plain));
}

static void pprof_put_event(Pprof *p, uint32_t number, bool *has_cpu, bool is_first) {
    const ProfileEvent *event = &p->input.profile->events[number];
    bool is_cpu = event->is_time && !*has_cpu;
    uint32_t type = is_cpu ? pprof_string(p, "cpu") : pprof_event_string(p, event);
    uint32_t unit = pprof_string(p, event->is_time ? "nanoseconds" : "count");

    *has_cpu |= is_cpu;
    p->event_columns[number] = p->n_columns++;
    pprof_put_type(p, PROFILE_SAMPLE_TYPE, type, unit);
    if (!is_first)
        return;
    pprof_put_type(p, PROFILE_PERIOD_TYPE, type, unit);
    protobuf_u64(&p->output.buffer, PROFILE_PERIOD, export_period(event));
    if (p->input.by_period)
        protobuf_u64(&p->output.buffer, PROFILE_DEFAULT_TYPE, type);
}

static void pprof_put_types(Pprof *p) {
    uint32_t samples, count;
    bool has_cpu = false, is_first = true;

    (void)pprof_string(p, "");
    samples = pprof_string(p, "samples");
    count = pprof_string(p, "count");
    pprof_put_type(p, PROFILE_SAMPLE_TYPE, samples, count);
    p->n_columns = 1;
    if (!p->input.by_period)
        protobuf_u64(&p->output.buffer, PROFILE_DEFAULT_TYPE, samples);
    for (uint32_t i = 0; i < p->input.profile->n_events; i++)
        if (p->input.event == PROFILE_NONE || p->input.event == i) {
            pprof_put_event(p, i, &has_cpu, is_first);
            is_first = false;
        }
}

static void pprof_put_comments(Pprof *p) {
    const Profile *profile = p->input.profile;
    _cleanup_(buffer_done) Buffer lost = {};
    size_t begun;

    if (p->input.title) {
        uint32_t title = pprof_string(p, p->input.title);

        begun = protobuf_begin(&p->output.buffer, PROFILE_COMMENT);
        protobuf_varint(&p->output.buffer, title);
        protobuf_end(&p->output.buffer, begun);
    }
    if (profile->lost > 0) {
        uint32_t text;

        text_u64(&lost, profile->lost);
        text_puts(&lost, " samples were lost");
        text = pprof_bytes_string(p, buffer_bytes(&lost));
        begun = protobuf_begin(&p->output.buffer, PROFILE_COMMENT);
        protobuf_varint(&p->output.buffer, text);
        protobuf_end(&p->output.buffer, begun);
    }
}

static void pprof_put_head(Pprof *p) {
    uint64_t since, until;

    pprof_put_types(p);
    export_window(&p->input, &since, &until);
    if (p->input.is_real && since < until)
        protobuf_u64(&p->output.buffer, PROFILE_TIME_NANOS, since);
    else if (p->input.profile->real_known && since < until)
        protobuf_u64(&p->output.buffer, PROFILE_TIME_NANOS, since + p->input.profile->real_offset);
    protobuf_u64(&p->output.buffer, PROFILE_DURATION_NANOS, until - since);
    pprof_put_comments(p);
}

static bool pprof_is_number(ProfileKey key) {
    return key == PROFILE_PID || key == PROFILE_TID || key == PROFILE_CPU;
}

static bool pprof_has_label(const Pprof *p, const ProfileLabel *label, ProfileKey key) {
    Bytes text;

    if (p->input.keys != 0 && !(p->input.keys & profile_key_bit(key)))
        return false;
    if (pprof_is_number(key))
        return label->values[key] != PROFILE_NONE;
    return pprof_keys[key] && export_label_bytes(p->input.profile, label, key, &text);
}

/* A number has its key as unit, as readers assume for one without: a 0 without a unit is skipped.
 */
static void pprof_put_label(Pprof *p, const PprofLabels *labels, const ProfileLabel *label,
                            ProfileKey key) {
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, SAMPLE_LABEL);

    protobuf_u64(out, LABEL_KEY, labels->keys[key]);
    if (pprof_is_number(key)) {
        protobuf_u64(out, LABEL_NUM, label->values[key]);
        protobuf_u64(out, LABEL_NUM_UNIT, labels->keys[key]);
    } else
        protobuf_u64(out, LABEL_STR, p->profile_strings[label->values[key]]);
    protobuf_end(out, begun);
}

/* The labels of the part that a label belongs to; NULL: it has none. */
static const ExportLabels *pprof_part_labels(const Pprof *p, uint32_t label) {
    const uint32_t *parts = p->input.part_of_label;

    return p->input.labels_of_parts ? &p->input.labels_of_parts[parts ? parts[label] : 0] : NULL;
}

/* Cells come part by part, so that the strings of one are enough. */
static void pprof_put_part_strings(Pprof *p, uint32_t label) {
    const ExportLabels *labels = pprof_part_labels(p, label);
    uint32_t part = p->input.part_of_label ? p->input.part_of_label[label] : 0;

    if (!labels || part == p->label_part)
        return;
    p->label_part = part;
    for (size_t i = 0; i < labels->n; i++) {
        p->label_strings[i][0] = pprof_label_string(p, labels->list[i].name);
        p->label_strings[i][1] = pprof_label_string(p, labels->list[i].value);
    }
}

/* What the sample refers to, before it. */
static void pprof_put_references(Pprof *p, const ProfileCell *cell, const ProfileLabel *label) {
    const StackTree *stacks = p->input.profile->stacks;

    for (uint32_t at = cell->stack; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        (void)pprof_location(p, stack_tree_node(stacks, at)->frame);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (!pprof_is_number(key) && pprof_has_label(p, label, key))
            (void)pprof_profile_string(p, label->values[key]);
    pprof_put_part_strings(p, cell->label);
}

static void pprof_put_values(Pprof *p, uint32_t event, uint64_t samples, uint64_t period) {
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, SAMPLE_VALUE);

    period = export_scale(&p->period, period);
    memset(p->values, 0, p->n_columns * sizeof(*p->values));
    if (event == PROFILE_NONE && p->n_columns == 2)
        p->values[1] = period;
    else if (event < p->input.profile->n_events)
        p->values[p->event_columns[event]] = period;
    p->values[0] = export_scale(&p->samples, samples);
    for (uint32_t i = 0; i < p->n_columns; i++)
        protobuf_varint(out, p->values[i]);
    protobuf_end(out, begun);
}

static void pprof_put_part_labels(Pprof *p, uint32_t label) {
    const ExportLabels *labels = pprof_part_labels(p, label);
    Buffer *out = &p->output.buffer;

    for (size_t i = 0; labels && i < labels->n; i++) {
        size_t begun = protobuf_begin(out, SAMPLE_LABEL);

        protobuf_u64(out, LABEL_KEY, p->label_strings[i][0]);
        protobuf_u64(out, LABEL_STR, p->label_strings[i][1]);
        protobuf_end(out, begun);
    }
}

static void pprof_put_sample(Pprof *p, const PprofLabels *labels, const ExportCell *item) {
    const StackTree *stacks = p->input.profile->stacks;
    const ProfileCell *cell = export_cell(&p->input, item);
    const ProfileLabel *label = export_cell_label(&p->input, item);
    Buffer *out = &p->output.buffer;
    size_t begun, packed;

    pprof_put_references(p, cell, label);
    begun = protobuf_begin(out, PROFILE_SAMPLE);
    packed = protobuf_begin(out, SAMPLE_LOCATION);
    for (uint32_t at = cell->stack; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        protobuf_varint(out, p->location_ids[stack_tree_node(stacks, at)->frame]);
    protobuf_end(out, packed);
    pprof_put_values(p, label->values[PROFILE_EVENT], cell->samples, cell->period);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (pprof_has_label(p, label, key))
            pprof_put_label(p, labels, label, key);
    pprof_put_part_labels(p, cell->label);
    protobuf_end(out, begun);
}

static void pprof_put_other(Pprof *p, const PprofPart *part) {
    Buffer *out = &p->output.buffer;
    uint32_t location;
    size_t begun, packed;

    if (part->other_samples == 0)
        return;
    location = pprof_other_location(p);
    begun = protobuf_begin(out, PROFILE_SAMPLE);
    packed = protobuf_begin(out, SAMPLE_LOCATION);
    protobuf_varint(out, location);
    protobuf_end(out, packed);
    pprof_put_values(p, part->event, part->other_samples, part->other_period);
    protobuf_end(out, begun);
}

int pprof_write(Pprof *p, const PprofPart *part, ExportSink sink, void *arg) {
    PprofLabels labels = {};
    int r = pprof_begin(p, part, sink, arg);

    if (r < 0)
        return r;
    pprof_put_head(p);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (pprof_keys[key] && (p->input.keys == 0 || (p->input.keys & profile_key_bit(key))))
            labels.keys[key] = pprof_string(p, pprof_keys[key]);
    for (size_t i = 0; i < part->n && r == 0; i++) {
        pprof_put_sample(p, &labels, &part->cells[i]);
        r = export_output_breathe(&p->output);
    }
    pprof_put_other(p, part);
    if (r == 0)
        r = export_output_flush(&p->output);
    return r < 0 || !p->gzip ? r : gzip_finish(p->gzip);
}

int export_pprof(const ExportInput *input, ExportSink sink, void *arg) {
    _cleanup_(export_cells_done) ExportCells cells = {};
    _cleanup_(pprof_freep) Pprof *p = NULL;
    int r = pprof_new(input, &p);

    if (r == 0)
        r = export_cells_fill(&cells, input, input->part_of_label);
    if (r < 0)
        return r;
    return pprof_write(p,
                       &(PprofPart){.cells = cells.items,
                                    .n = cells.n,
                                    .event = input->event,
                                    .since_ns = input->since_ns,
                                    .until_ns = input->until_ns},
                       sink, arg);
}
