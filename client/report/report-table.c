/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/figure.h"
#include "client/frame/text-table.h"
#include "client/report/report.h"
#include "util/text.h"

/* A report as a table for people: shares, the counts behind them, and a column for each key. */

enum { FIGURES = 3 };

/* A share from which a row is worth a look. */
#define HOT_PERCENT 5.0

/* clang-format off */
static const Column columns[ROW_KEYS] = {
    [PROFILE_EVENT]     = { .name = "EVENT",     .shrinks = true },
    [PROFILE_COMM]      = { .name = "COMM",      .shrinks = true },
    [PROFILE_PID]       = { .name = "PID",       .right = true   },
    [PROFILE_TID]       = { .name = "TID",       .right = true   },
    [PROFILE_CPU]       = { .name = "CPU",       .right = true   },
    [PROFILE_CGROUP]    = { .name = "CGROUP",    .shrinks = true },
    [PROFILE_UNIT]      = { .name = "UNIT",      .shrinks = true },
    [PROFILE_CONTAINER] = { .name = "CONTAINER", .shrinks = true },
    [PROFILE_TIME]      = { .name = "TIME"                       },
    [ROW_DSO]           = { .name = "DSO",       .shrinks = true },
    [ROW_SYMBOL]        = { .name = "SYMBOL",    .shrinks = true, .is_main = true },
    [ROW_SRCLINE]       = { .name = "SRCLINE",   .shrinks = true },
};
/* clang-format on */

static void report_table_share(const Report *report, const RowTable *rows, Table *table,
                               uint64_t samples, uint64_t period) {
    double share = report_share(report, rows, report_weight(report, samples, period));

    table_printf(table, "%.2f%%", share);
    table_color(table, share >= HOT_PERCENT ? COLOR_STRONG : COLOR_NONE);
}

static void report_table_row(const Report *report, const RowTable *rows, const ProfileRow *row,
                             Table *table, Buffer *text) {
    report_table_share(report, rows, table, row->samples, row->period);
    report_table_share(report, rows, table, row->total_samples, row->total_period);
    figure_count(text, row->samples);
    table_buffer(table, text);
    for (size_t k = 0; k < rows->keys.n; k++) {
        report_put_value(rows, row, rows->keys.items[k], text);
        if (text->size == 0)
            text_puts(text, "-");
        table_buffer(table, text);
    }
}

static void report_table_put_left_out(const Report *report, size_t n) {
    Buffer *out = &report->context->out.buffer;

    if (n == 0 || report->context->no_legend)
        return;
    text_puts(out, "\n");
    figure_count(out, n);
    text_printf(out, n == 1 ? " row below %g%% is" : " rows below %g%% are",
                (double)report->limit / (double)REPORT_PERCENT);
    text_puts(out, " not shown; --percent-limit=0 shows all.\n");
}

int report_print_table(const Report *report, uint32_t event) {
    Column heading[FIGURES + ROW_KEYS + 1] = {
        {.name = "SELF", .right = true},
        {.name = "TOTAL", .right = true},
        {.name = "SAMPLES", .right = true},
    };
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    size_t left_out = 0;
    int status = report_rows(report, event, &rows);

    if (status != STATUS_OK)
        return status;
    for (size_t k = 0; k < report->keys.n; k++)
        heading[FIGURES + k] = columns[report->keys.items[k]];
    if (table_new(report->context, heading, &table) < 0)
        return report_no_memory();
    for (size_t i = 0; i < rows->n; i++) {
        const ProfileRow *row = &rows->rows[rows->order[i]];

        if (report_is_shown(report, rows, report_row_weight(report, row)))
            report_table_row(report, rows, row, table, &text);
        else
            left_out++;
    }
    if (table_print(table, &report->context->out.buffer) < 0)
        return report_no_memory();
    report_table_put_left_out(report, left_out);
    return STATUS_OK;
}
