/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/report/report.h"
#include "util/fields.h"
#include "util/text.h"

/* A report for programs: JSON, with trees where these are wanted, and comma-separated values. */

/* A value between quotes where it has to be, as RFC 4180 says. */
static void report_csv_put(Buffer *out, Bytes value) {
    bool quotes = false;

    for (size_t i = 0; i < value.size; i++)
        quotes |= strchr(",\"", value.data[i]) != NULL;
    text_puts(out, quotes ? "\"" : "");
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] == '"')
            text_putc(out, '"');
        text_putc(out, (char)value.data[i]);
    }
    text_puts(out, quotes ? "\"" : "");
}

static void report_csv_put_row(const Report *report, const RowTable *rows, const ProfileRow *row,
                               Buffer *value) {
    const uint64_t counts[] = {row->samples, row->period, row->total_samples, row->total_period};
    Buffer *out = &report->context->out.buffer;

    for (size_t k = 0; k < rows->keys.n; k++) {
        buffer_clear(value);
        report_put_value(rows, row, rows->keys.items[k], value);
        report_csv_put(out, buffer_bytes(value));
        text_putc(out, ',');
    }
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        text_puts(out, i > 0 ? "," : "");
        text_u64(out, counts[i]);
    }
    text_putc(out, '\n');
}

int report_print_csv(const Report *report) {
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    _cleanup_(buffer_done) Buffer value = {};
    Buffer *out = &report->context->out.buffer;
    int status = report_rows(report, PROFILE_NONE, &rows);

    if (status != STATUS_OK)
        return status;
    for (size_t k = 0; k < rows->keys.n && !report->context->no_legend; k++)
        text_printf(out, "%s,", row_key_name(rows->keys.items[k]));
    if (!report->context->no_legend)
        text_puts(out, "samples,period,total_samples,total_period\n");
    for (size_t i = 0; i < rows->n && output_breathe(&report->context->out) == 0; i++) {
        const ProfileRow *row = &rows->rows[rows->order[i]];

        if (report_is_shown(report, rows, report_row_weight(report, row)))
            report_csv_put_row(report, rows, row, &value);
    }
    return buffer_error(&value) ? report_no_memory() : STATUS_OK;
}

static void report_json_value(const RowTable *rows, const ProfileRow *row, unsigned key, Fields *f,
                              Buffer *value) {
    const char *name = row_key_name(key);
    uint32_t number = row_key_is_number(key) ? row_table_number(rows, row, key) : 0;

    if (row_key_is_number(key) && number == PROFILE_NONE) {
        fields_null(f, name);
    } else if (key == PROFILE_TIME) {
        fields_u64(f, name, report_time_us(rows, row));
    } else if (row_key_is_number(key)) {
        fields_u64(f, name, number);
    } else {
        buffer_clear(value);
        row_table_put(rows, row, key, value);
        fields_bytes(f, name, buffer_bytes(value));
    }
}

static void report_json_children(const Report *report, const RowTable *rows,
                                 const ProfileTree *tree, uint32_t node, Fields *f) {
    fields_begin_array(f, report->settings->tree == REPORT_CALLERS ? "callers" : "callees");
    for (uint32_t i = node == UINT32_MAX ? node : tree->nodes[node].child; i != UINT32_MAX;
         i = tree->nodes[i].next) {
        const TreeNode *child = &tree->nodes[i];

        if (!report_is_shown(report, rows, report_weight(report, child->samples, child->period)))
            continue;
        fields_begin_object(f, NULL);
        fields_bytes(f, "symbol", text_set_get(report->view->names->texts, child->function));
        fields_u64(f, "samples", child->samples);
        fields_u64(f, "period", child->period);
        if (child->child != UINT32_MAX)
            report_json_children(report, rows, tree, i, f);
        fields_end_object(f);
    }
    fields_end_array(f);
}

static void report_json_row(const Report *report, const RowTable *rows, const ProfileRow *row,
                            Fields *f, Buffer *value) {
    fields_begin_object(f, NULL);
    for (size_t k = 0; k < rows->keys.n; k++)
        report_json_value(rows, row, rows->keys.items[k], f, value);
    fields_u64(f, "samples", row->samples);
    fields_u64(f, "period", row->period);
    fields_u64(f, "totalSamples", row->total_samples);
    fields_u64(f, "totalPeriod", row->total_period);
}

static void report_json_events(const View *view, Fields *f) {
    const Profile *p = view->profile;

    for (size_t i = fields_begin_list(f, "events"); fields_next(f, i, p->n_events); i++) {
        fields_bytes(f, "name", view_event_name(view, (uint32_t)i));
        fields_u64(f, "samples", p->events[i].samples);
        fields_u64(f, "period", p->events[i].period);
        fields_u64(f, "lost", p->events[i].lost);
    }
}

static void report_json_facts(const View *view, Fields *f) {
    const Profile *p = view->profile;

    fields_u64(f, "total", p->samples);
    fields_u64(f, "lost", p->lost);
    report_json_events(view, f);
    fields_u64(f, "leftOut", p->left_out);
    fields_u64(f, "folded", p->folded);
    fields_u64(f, "foldedLabels", p->folded_labels);
    if (view->until_us > 0) {
        fields_u64(f, "sinceUsec", view->since_us);
        fields_u64(f, "untilUsec", view->until_us);
    } else {
        fields_null(f, "sinceUsec");
        fields_null(f, "untilUsec");
    }
    view_put_completeness(view, f);
}

int report_print_json(const Report *report) {
    Fields f = fields_to(&report->context->out.buffer, context_fields_format(report->context));
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    _cleanup_(profile_tree_freep) ProfileTree *tree = NULL;
    _cleanup_(buffer_done) Buffer value = {};
    int status = report_rows(report, PROFILE_NONE, &rows);

    if (status == STATUS_OK && report->settings->tree)
        status = report_trees(report, rows, &tree);
    if (status != STATUS_OK)
        return status;
    fields_begin_object(&f, NULL);
    fields_begin_array(&f, "rows");
    for (size_t i = 0; i < rows->n && output_breathe(&report->context->out) == 0; i++) {
        const ProfileRow *row = &rows->rows[rows->order[i]];

        if (!report_is_shown(report, rows, report_row_weight(report, row)))
            continue;
        report_json_row(report, rows, row, &f, &value);
        if (tree)
            report_json_children(report, rows, tree, tree->roots[rows->order[i]], &f);
        fields_end_object(&f);
    }
    fields_end_array(&f);
    report_json_facts(report->view, &f);
    fields_end_object(&f);
    text_putc(&report->context->out.buffer, '\n');
    return buffer_error(&value) ? report_no_memory() : STATUS_OK;
}
