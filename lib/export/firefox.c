/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "export/export-format.h"
#include "export/firefox-state.h"
#include "util/text.h"

/*
 * The processed profile of the Firefox Profiler: facts, libraries, tables that all threads share
 * (firefox-table.c), and threads with their samples in order of time. A thread is a group of
 * labels; what it has no field for (unit, container, event) is in its names. The version is the
 * first with shared tables and sources as we write them; newer readers bring it up to date.
 */

enum { FIREFOX_VERSION = 61, FIREFOX_GECKO_VERSION = 31, NS_PER_MS = 1000000 };

static void firefox_done(Firefox *f) {
    export_output_done(&f->output);
    export_functions_done(&f->functions);
    export_groups_done(&f->threads);
    export_cells_done(&f->cells);
    free(f->first_rows);
    free(f->source_of);
}

static void firefox_put_categories(Firefox *f) {
    static const char *const names[][2] = {
        {"Other", "grey"}, {"User", "yellow"}, {"Kernel", "orange"},
        {"JIT", "blue"},   {"Guest", "green"},
    };

    fields_begin_array(&f->fields, "categories");
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        fields_begin_object(&f->fields, NULL);
        fields_str(&f->fields, "name", names[i][0]);
        fields_str(&f->fields, "color", names[i][1]);
        fields_begin_array(&f->fields, "subcategories");
        fields_str(&f->fields, NULL, "Other");
        fields_end_array(&f->fields);
        fields_end_object(&f->fields);
    }
    fields_end_array(&f->fields);
}

static uint64_t firefox_interval_ns(const Firefox *f) {
    uint64_t interval = export_interval_ns(export_event(f->input, PROFILE_NONE));

    /* No sample is closer to the next one than spans are. */
    if (interval == 0 || f->input->profile->keys & profile_key_bit(PROFILE_TIME))
        interval = MAX(interval, f->input->profile->bucket_ns);
    return interval > 0 ? interval : NS_PER_MS;
}

static void firefox_put_meta(Firefox *f) {
    const Profile *profile = f->input->profile;
    uint64_t since, until;

    export_window(f->input, &since, &until);
    fields_begin_object(&f->fields, "meta");
    fields_ms_of_ns(&f->fields, "interval", firefox_interval_ns(f));
    fields_ms_of_ns(&f->fields, "startTime",
                    profile->real_known ? since + profile->real_offset : 0);
    fields_u64(&f->fields, "profilingStartTime", 0);
    fields_ms_of_ns(&f->fields, "profilingEndTime", until - since);
    fields_u64(&f->fields, "processType", 0);
    fields_str(&f->fields, "product", f->input->title ? f->input->title : "profd");
    fields_str(&f->fields, "importedFrom", "profd");
    fields_u64(&f->fields, "stackwalk", 1);
    fields_u64(&f->fields, "version", FIREFOX_GECKO_VERSION);
    fields_u64(&f->fields, "preprocessedProfileVersion", FIREFOX_VERSION);
    fields_bool(&f->fields, "symbolicated", true);
    fields_bool(&f->fields, "symbolicationNotSupported", true);
    fields_bool(&f->fields, "usesOnlyOneStackType", true);
    fields_bool(&f->fields, "sourceCodeIsNotOnSearchfox", true);
    fields_str(&f->fields, "oscpu", "Linux");
    firefox_put_categories(f);
    fields_begin_array(&f->fields, "markerSchema");
    fields_end_array(&f->fields);
    fields_end_object(&f->fields);
}

/* Since the window began; a span of time counts from its beginning. */
static uint64_t firefox_time_ns(const Firefox *f, const ExportCell *cell) {
    const Profile *profile = f->input->profile;
    uint32_t number = export_cell_label(f->input, cell)->values[PROFILE_TIME];
    uint64_t since, until, time;

    export_window(f->input, &since, &until);
    if (number == PROFILE_NONE ||
        __builtin_mul_overflow(profile->bucket_ns, (uint64_t)number, &time) ||
        __builtin_add_overflow(time, profile->start_ns, &time))
        return 0;
    return time > since ? time - since : 0;
}

static void firefox_put_weight(Firefox *f, const ExportCell *cell, bool is_time) {
    uint64_t weight = export_cell_weight(f->input, cell);

    if (is_time)
        fields_ms_of_ns(&f->fields, NULL, weight);
    else
        fields_u64(&f->fields, NULL, weight);
}

static void firefox_put_samples(Firefox *f, size_t first, size_t last, bool is_time) {
    const ExportCell *cells = f->cells.items;

    fields_begin_object(&f->fields, "samples");
    fields_begin_array(&f->fields, "stack");
    for (size_t i = first; i < last && export_output_breathe(&f->output) == 0; i++) {
        uint32_t stack = export_cell(f->input, &cells[i])->stack;

        if (stack == STACK_ROOT)
            fields_null(&f->fields, NULL);
        else
            fields_u64(&f->fields, NULL, f->first_rows[stack + 1] - 1);
    }
    fields_end_array(&f->fields);
    fields_begin_array(&f->fields, "time");
    for (size_t i = first; i < last && export_output_breathe(&f->output) == 0; i++)
        fields_ms_of_ns(&f->fields, NULL, firefox_time_ns(f, &cells[i]));
    fields_end_array(&f->fields);
    fields_begin_array(&f->fields, "weight");
    for (size_t i = first; i < last && export_output_breathe(&f->output) == 0; i++)
        firefox_put_weight(f, &cells[i], is_time);
    fields_end_array(&f->fields);
    fields_str(&f->fields, "weightType", is_time ? "tracing-ms" : "samples");
    fields_u64(&f->fields, "length", last - first);
    fields_end_object(&f->fields);
}

static void firefox_put_no_markers(Firefox *f) {
    static const char *const columns[] = {"data",    "name",  "startTime",
                                          "endTime", "phase", "category"};

    fields_begin_object(&f->fields, "markers");
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
        fields_begin_array(&f->fields, columns[i]);
        fields_end_array(&f->fields);
    }
    fields_u64(&f->fields, "length", 0);
    fields_end_object(&f->fields);
}

/* Appends " (VALUE)" for each key that has one. */
static void firefox_add_values(const Firefox *f, const ProfileLabel *label, Buffer *text,
                               const ProfileKey *keys, size_t n) {
    const Profile *profile = f->input->profile;
    Bytes value;

    for (size_t i = 0; i < n; i++)
        if (export_label_bytes(profile, label, keys[i], &value)) {
            text_puts(text, " (");
            buffer_append(text, value.data, value.size);
            text_putc(text, ')');
        }
}

/* Whether it is what rare labels became: keys were asked for, and it has no value of any. */
static bool firefox_is_folded(const Profile *profile, const ProfileLabel *label) {
    unsigned keys =
        profile->keys & ~(profile_key_bit(PROFILE_EVENT) | profile_key_bit(PROFILE_TIME));

    if (profile->folded_labels == 0 || keys == 0)
        return false;
    for (unsigned key = 0; key < PROFILE_KEYS; key++)
        if (key != PROFILE_EVENT && label->values[key] != PROFILE_NONE)
            return false;
    return true;
}

static void firefox_put_names(Firefox *f, const ProfileLabel *label) {
    static const ProfileKey owners[] = {PROFILE_UNIT, PROFILE_CONTAINER, PROFILE_CGROUP};
    static const ProfileKey event = PROFILE_EVENT;
    _cleanup_(buffer_done) Buffer thread = {}, process = {};
    Bytes comm;

    if (export_label_bytes(f->input->profile, label, PROFILE_COMM, &comm)) {
        buffer_append(&thread, comm.data, comm.size);
        buffer_append(&process, comm.data, comm.size);
    } else if (firefox_is_folded(f->input->profile, label)) {
        text_puts(&thread, "[other] rare threads, without times");
    } else if (!export_label_text(f->input->profile, label, PROFILE_TID, &thread))
        text_puts(&thread, "all threads");
    if (!export_event(f->input, PROFILE_NONE))
        firefox_add_values(f, label, &thread, &event, 1);
    firefox_add_values(f, label, &process, owners, sizeof(owners) / sizeof(*owners));
    fields_bytes(&f->fields, "name", buffer_bytes(&thread));
    if (process.size > 0)
        fields_bytes(&f->fields, "processName", buffer_bytes(&process));
    if (buffer_error(&thread) || buffer_error(&process))
        f->output.error = -ENOMEM;
}

static void firefox_put_thread(Firefox *f, size_t first, size_t last) {
    const ProfileLabel *label = &f->threads.items[export_cell_group(&f->cells.items[first])];
    const ProfileEvent *event = export_event(f->input, label->values[PROFILE_EVENT]);
    uint32_t pid = label->values[PROFILE_PID], tid = label->values[PROFILE_TID];
    char pid_text[TEXT_NUMBER_MAX + 1] = "0";

    if (pid != PROFILE_NONE)
        *text_put_u64(pid_text, pid) = '\0';
    fields_begin_object(&f->fields, NULL);
    firefox_put_names(f, label);
    fields_str(&f->fields, "processType", "default");
    fields_u64(&f->fields, "processStartupTime", 0);
    fields_null(&f->fields, "processShutdownTime");
    fields_u64(&f->fields, "registerTime", 0);
    fields_null(&f->fields, "unregisterTime");
    fields_begin_array(&f->fields, "pausedRanges");
    fields_end_array(&f->fields);
    fields_bool(&f->fields, "isMainThread", pid != PROFILE_NONE && pid == tid);
    fields_str(&f->fields, "pid", pid_text);
    fields_u64(&f->fields, "tid", tid == PROFILE_NONE ? 0 : tid);
    firefox_put_samples(f, first, last, f->input->by_period && event && event->is_time);
    firefox_put_no_markers(f);
    fields_end_object(&f->fields);
}

static void firefox_put(Firefox *f) {
    const ExportCells *cells = &f->cells;

    fields_begin_object(&f->fields, NULL);
    firefox_put_meta(f);
    firefox_put_libs(f);
    firefox_put_shared(f);
    fields_begin_array(&f->fields, "threads");
    for (size_t i = 0, last; i < cells->n && f->output.error == 0; i = last) {
        for (last = i + 1; last < cells->n && export_cell_group(&cells->items[last]) ==
                                                  export_cell_group(&cells->items[i]);)
            last++;
        firefox_put_thread(f, i, last);
    }
    fields_end_array(&f->fields);
    fields_end_object(&f->fields);
    text_putc(&f->output.buffer, '\n');
}

int export_firefox(const ExportInput *input, ExportSink sink, void *arg) {
    _cleanup_(firefox_done) Firefox f = {.input = input, .output = {.sink = sink, .arg = arg}};
    int r =
        export_functions_fill(&f.functions, input, EXPORT_APART_BY_FILE | EXPORT_APART_BY_MAPPING);

    f.fields = fields_to(&f.output.buffer, FIELDS_JSON);
    if (r == 0)
        r = export_groups_fill(&f.threads, input->profile,
                               EXPORT_FIREFOX & ~profile_key_bit(PROFILE_TIME));
    if (r == 0)
        r = export_cells_fill(&f.cells, input, f.threads.of_label);
    if (r == 0)
        r = firefox_number_rows(&f);
    if (r < 0)
        return r;
    firefox_put(&f);
    return export_output_flush(&f.output);
}
