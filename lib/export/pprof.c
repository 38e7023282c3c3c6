/* SPDX-License-Identifier: LGPL-2.1-or-later */
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

static void pprof_done(Pprof *p) {
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
    buffer_done(&p->text);
}

static int pprof_compress(const void *data, size_t size, void *arg) {
    Pprof *p = arg;

    return gzip_write(p->gzip, data, size);
}

static int pprof_prepare(Pprof *p, ExportSink sink, void *arg) {
    const Profile *profile = p->input->profile;
    int r = gzip_new(GZIP_LEVEL_DEFAULT, sink, arg, &p->gzip);

    if (r == 0)
        r = export_functions_fill(&p->functions, p->input, EXPORT_APART_BY_FILE);
    if (r == 0)
        r = pprof_survey_frames(p);
    if (r < 0)
        return r;
    p->output = (ExportOutput){.sink = pprof_compress, .arg = p};
    p->location_ids = calloc((size_t)frame_table_n_frames(profile->frames) + 1, sizeof(uint32_t));
    p->function_ids = calloc(p->functions.n + 1, sizeof(uint32_t));
    p->name_strings = calloc((size_t)text_set_count(p->input->names->texts) + 1, sizeof(uint32_t));
    p->profile_strings = calloc((size_t)text_set_count(profile->texts) + 1, sizeof(uint32_t));
    p->event_columns = calloc(profile->n_events + 1, sizeof(uint32_t));
    p->values = calloc(profile->n_events + 2, sizeof(uint64_t));
    if (!p->location_ids || !p->function_ids || !p->name_strings || !p->profile_strings ||
        !p->event_columns || !p->values)
        return -ENOMEM;
    return 0;
}

static void pprof_put_type(Pprof *p, uint32_t field, uint32_t type, uint32_t unit) {
    size_t begun = protobuf_begin(&p->output.buffer, field);

    protobuf_u64(&p->output.buffer, VALUE_TYPE, type);
    protobuf_u64(&p->output.buffer, VALUE_UNIT, unit);
    protobuf_end(&p->output.buffer, begun);
}

/* Engines build names of series from this one, so it holds letters, digits and _ alone. */
static uint32_t pprof_event_string(Pprof *p, const ProfileEvent *event) {
    Bytes name = text_set_get(p->input->profile->texts, event->name);
    _cleanup_(buffer_done) Buffer plain = {};

    for (size_t i = 0; i < name.size; i++) {
        char c = (char)name.data[i];
        bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        text_putc(&plain, kept ? c : '_');
    }
    if (name.size == 0)
        text_puts(&plain, "event");
    if (buffer_error(&plain))
        p->output.error = -ENOMEM;
    return pprof_bytes_string(p, buffer_bytes(&plain));
}

/* The period of sampling: the fixed one, or on average. */
static uint64_t pprof_period(const ProfileEvent *event) {
    if (event->by_period && event->rate > 0)
        return event->rate;
    if (event->is_time && export_interval_ns(event) > 0)
        return export_interval_ns(event);
    return event->samples > 0 ? event->period / event->samples : 0;
}

static void pprof_put_event(Pprof *p, uint32_t number, bool *has_cpu, bool is_first) {
    const ProfileEvent *event = &p->input->profile->events[number];
    bool is_cpu = event->is_time && !*has_cpu;
    uint32_t type = is_cpu ? pprof_string(p, "cpu") : pprof_event_string(p, event);
    uint32_t unit = pprof_string(p, event->is_time ? "nanoseconds" : "count");

    *has_cpu |= is_cpu;
    p->event_columns[number] = p->n_columns++;
    pprof_put_type(p, PROFILE_SAMPLE_TYPE, type, unit);
    if (!is_first)
        return;
    pprof_put_type(p, PROFILE_PERIOD_TYPE, type, unit);
    protobuf_u64(&p->output.buffer, PROFILE_PERIOD, pprof_period(event));
    if (p->input->by_period)
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
    if (!p->input->by_period)
        protobuf_u64(&p->output.buffer, PROFILE_DEFAULT_TYPE, samples);
    for (uint32_t i = 0; i < p->input->profile->n_events; i++)
        if (p->input->event == PROFILE_NONE || p->input->event == i) {
            pprof_put_event(p, i, &has_cpu, is_first);
            is_first = false;
        }
}

static void pprof_put_comments(Pprof *p) {
    const Profile *profile = p->input->profile;
    _cleanup_(buffer_done) Buffer lost = {};
    size_t begun;

    if (p->input->title) {
        uint32_t title = pprof_string(p, p->input->title);

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
    export_window(p->input, &since, &until);
    if (p->input->profile->real_known && since < until)
        protobuf_u64(&p->output.buffer, PROFILE_TIME_NANOS, since + p->input->profile->real_offset);
    protobuf_u64(&p->output.buffer, PROFILE_DURATION_NANOS, until - since);
    pprof_put_comments(p);
}

/* A number has its key as unit, as readers assume for one without: a 0 without a unit is skipped.
 */
static void pprof_put_label(Pprof *p, const PprofLabels *labels, const ProfileLabel *label,
                            ProfileKey key) {
    Buffer *out = &p->output.buffer;
    size_t begun = protobuf_begin(out, SAMPLE_LABEL);

    protobuf_u64(out, LABEL_KEY, labels->keys[key]);
    if (key == PROFILE_PID || key == PROFILE_TID || key == PROFILE_CPU) {
        protobuf_u64(out, LABEL_NUM, label->values[key]);
        protobuf_u64(out, LABEL_NUM_UNIT, labels->keys[key]);
    } else
        protobuf_u64(out, LABEL_STR, p->profile_strings[label->values[key]]);
    protobuf_end(out, begun);
}

static bool pprof_has_label(const Pprof *p, const ProfileLabel *label, ProfileKey key) {
    Bytes text;

    if (key == PROFILE_PID || key == PROFILE_TID || key == PROFILE_CPU)
        return label->values[key] != PROFILE_NONE;
    return pprof_keys[key] && export_label_bytes(p->input->profile, label, key, &text);
}

/* What the sample refers to, before it. */
static void pprof_put_references(Pprof *p, const ProfileCell *cell, const ProfileLabel *label) {
    const StackTree *stacks = p->input->profile->stacks;

    for (uint32_t at = cell->stack; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        (void)pprof_location(p, stack_tree_node(stacks, at)->frame);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (key != PROFILE_PID && key != PROFILE_TID && key != PROFILE_CPU &&
            pprof_has_label(p, label, key))
            (void)pprof_profile_string(p, label->values[key]);
}

static void pprof_put_values(Pprof *p, const ProfileCell *cell, const ProfileLabel *label) {
    Buffer *out = &p->output.buffer;
    uint32_t event = label->values[PROFILE_EVENT];
    size_t begun = protobuf_begin(out, SAMPLE_VALUE);

    memset(p->values, 0, p->n_columns * sizeof(*p->values));
    if (event == PROFILE_NONE && p->n_columns == 2)
        p->values[1] = cell->period;
    else if (event < p->input->profile->n_events)
        p->values[p->event_columns[event]] = cell->period;
    p->values[0] = cell->samples;
    for (uint32_t i = 0; i < p->n_columns; i++)
        protobuf_varint(out, p->values[i]);
    protobuf_end(out, begun);
}

static void pprof_put_sample(Pprof *p, const PprofLabels *labels, const ExportCell *item) {
    const StackTree *stacks = p->input->profile->stacks;
    const ProfileCell *cell = export_cell(p->input, item);
    const ProfileLabel *label = export_cell_label(p->input, item);
    Buffer *out = &p->output.buffer;
    size_t begun, packed;

    pprof_put_references(p, cell, label);
    begun = protobuf_begin(out, PROFILE_SAMPLE);
    packed = protobuf_begin(out, SAMPLE_LOCATION);
    for (uint32_t at = cell->stack; at != STACK_ROOT; at = stack_tree_node(stacks, at)->parent)
        protobuf_varint(out, p->location_ids[stack_tree_node(stacks, at)->frame]);
    protobuf_end(out, packed);
    pprof_put_values(p, cell, label);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (pprof_has_label(p, label, key))
            pprof_put_label(p, labels, label, key);
    protobuf_end(out, begun);
}

int export_pprof(const ExportInput *input, ExportSink sink, void *arg) {
    _cleanup_(export_cells_done) ExportCells cells = {};
    _cleanup_(pprof_done) Pprof p = {.input = input};
    PprofLabels labels = {};
    int r = pprof_prepare(&p, sink, arg);

    if (r == 0)
        r = export_cells_fill(&cells, input, NULL);
    if (r < 0)
        return r;
    pprof_put_head(&p);
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (pprof_keys[key])
            labels.keys[key] = pprof_string(&p, pprof_keys[key]);
    for (size_t i = 0; i < cells.n && r == 0; i++) {
        pprof_put_sample(&p, &labels, &cells.items[i]);
        r = export_output_breathe(&p.output);
    }
    if (r == 0)
        r = export_output_flush(&p.output);
    return r < 0 ? r : gzip_finish(p.gzip);
}
