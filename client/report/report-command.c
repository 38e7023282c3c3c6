/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/report/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "util/text.h"

/*
 * `profctl report`: where samples were taken, as rows of a table. Each row has its own samples and
 * those of what it called. Events are never added up, since their periods have different units: a
 * report has a table for each of them.
 */

enum { SORT_SELF = 1, SORT_TOTAL, SORT_NAME };

static void report_print_heading(const Report *report) {
    _cleanup_(buffer_done) Buffer text = {};
    Buffer *out = &report->context->out.buffer;
    const View *view = report->view;

    if (report->context->no_legend)
        return;
    text_escape_str(&text, view->title);
    text_puts(&text, ": ");
    text_escape_str(&text, view->subtitle);
    text_puts(&text, ".");
    if (context_width(report->context) == 0) {
        buffer_append(out, text.data, text.size);
        text_putc(out, '\n');
        return;
    }
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        screen_wrap(out, (const char *)text.data, 0, 0, context_width(report->context));
}

static int report_print_event(const Report *report, uint32_t event) {
    text_putc(&report->context->out.buffer, '\n');
    return report->settings->tree ? report_print_trees(report, event)
                                  : report_print_table(report, event);
}

/* Each event has rings of its own, so one may have lost samples and another one none. */
static void report_put_event_counts(Buffer *out, const ProfileEvent *event) {
    text_puts(out, ", ");
    figure_count(out, event->samples);
    text_puts(out, event->samples == 1 ? " sample" : " samples");
    if (event->lost > 0) {
        text_puts(out, ", ");
        figure_count(out, event->lost);
        text_puts(out, " lost");
    }
}

static int report_print_text(Report *report) {
    const Profile *p = report->view->profile;
    Buffer *out = &report->context->out.buffer;
    int status = STATUS_OK;
    bool several = false;

    context_page(report->context);
    report_print_heading(report);
    if (row_keys_hold(&report->keys, PROFILE_EVENT) || report->view->event == PROFILE_NONE)
        return report_print_event(report, PROFILE_NONE);
    several = p->events[report->view->event].samples < p->samples;
    for (uint32_t i = 0; i < p->n_events && status == STATUS_OK; i++) {
        if (p->events[i].samples == 0)
            continue;
        if (several && !report->context->no_legend) {
            text_puts(out, "\nEvent ");
            text_escape(out, view_event_name(report->view, i));
            report_put_event_counts(out, &p->events[i]);
            text_puts(out, ":\n");
        }
        status = report_print_event(report, i);
    }
    return status;
}

/* Whether samples of different events are rows of one table. */
static bool report_mixes_events(const Report *report) {
    const View *view = report->view;

    return view->event != PROFILE_NONE &&
           view->profile->events[view->event].samples < view->profile->samples;
}

static void report_choose_keys(Report *report) {
    static const RowKeys usual = {{PROFILE_COMM, ROW_DSO, ROW_SYMBOL}, 3};
    const ReportSettings *s = report->settings;
    bool as_data = s->csv || report->context->json != JSON_OFF;

    report->keys = s->view.by.n > 0 ? s->view.by : usual;
    /* Data is one list, so each row says which event it is of. */
    if (as_data && report_mixes_events(report) && !row_keys_hold(&report->keys, PROFILE_EVENT)) {
        memmove(report->keys.items + 1, report->keys.items, report->keys.n++);
        report->keys.items[0] = PROFILE_EVENT;
    }
    report->by_period = view_by_period(&s->view, true);
    if (!row_keys_hold(&report->keys, PROFILE_EVENT) || !report_mixes_events(report))
        return;
    report->by_period = false;
    if (s->view.weight == VIEW_BY_PERIOD)
        remark(report->context,
               "Rows are of different events, whose periods have different units, "
               "so they are sorted by the number of samples; --event chooses one.");
}

static void report_choose_order(Report *report) {
    const ReportSettings *s = report->settings;

    report->sort = s->sort == SORT_TOTAL                               ? ROW_BY_TOTAL
                   : s->sort == SORT_NAME                              ? ROW_BY_NAME
                   : s->sort == SORT_SELF || s->tree != REPORT_CALLEES ? ROW_BY_SELF
                                                                       : ROW_BY_TOTAL;
    report->limit = s->limit;
    if (!s->has_limit && !s->csv && report->context->json == JSON_OFF)
        report->limit = s->tree ? REPORT_PERCENT / 2 : REPORT_PERCENT / 10;
}

static int report_check(const Context *c, const ReportSettings *s) {
    if (s->csv && c->json != JSON_OFF)
        return complain(STATUS_USAGE, "Give either --csv or --json.");
    if (s->csv && s->tree)
        return complain(STATUS_USAGE, "A tree has no rows for --csv; --json has trees.");
    return STATUS_OK;
}

static int report_run(Context *c, void *settings, char **arguments) {
    const ReportSettings *s = settings;
    _cleanup_(view_done) View view = {};
    Report report = {.context = c, .settings = s, .view = &view};
    bool is_text = !s->csv && c->json == JSON_OFF;
    ViewRequest request = {.merges_unnamed = !s->addresses,
                           .shows_gaps = is_text && !c->no_legend && isatty(STDOUT_FILENO)};
    int r, status = report_check(c, s);

    if (status != STATUS_OK)
        return status;
    if (s->view.by.n == 0)
        request.keys = profile_key_bit(PROFILE_COMM);
    status = view_load(c, &s->view, arguments, &request, &view);
    if (!view.profile)
        return status;
    report_choose_keys(&report);
    report_choose_order(&report);
    if (s->csv)
        view_remark_lost(c, &view, PROFILE_NONE);
    r = c->json != JSON_OFF ? report_print_json(&report)
        : s->csv            ? report_print_csv(&report)
                            : report_print_text(&report);
    return r != STATUS_OK ? r : status;
}

static int report_option_limit(const Option *option, const char *argument, void *field) {
    ReportSettings *s = field;
    size_t n = strlen(argument);

    s->has_limit = true;
    return parse_seconds(argument, n > 0 && argument[n - 1] == '%' ? n - 1 : n, &s->limit) < 0
               ? -EINVAL
               : 0;
}

static void report_settings_done(void *settings) {
    view_settings_done(&((ReportSettings *)settings)->view);
}

/* clang-format off */
static const Option report_options[] = {
    VIEW_BY_OPTIONS(ReportSettings, view)
    {0,   "tree",          "callers|callees", "Show under each row what calls it, or what it calls", option_choice, offsetof(ReportSettings, tree)},
    {0,   "sort",          "self|total|name", "Sort by SELF (default), by TOTAL, or by name", option_choice, offsetof(ReportSettings, sort)},
    {0,   "percent-limit", "PERCENT", "Leave out rows below this share, by default 0.1, with --tree 0.5", report_option_limit, 0},
    {0,   "addresses",     NULL,      "Show code without a symbol by address, not as [FILE]", option_flag, offsetof(ReportSettings, addresses)},
    {0,   "csv",           NULL,      "Print comma-separated values", option_flag, offsetof(ReportSettings, csv)},
    VIEW_OPTIONS(ReportSettings, view)
    {},
};
/* clang-format on */

const Command command_report = {
    .name = "report",
    .group = COMMAND_VIEW,
    .arguments = "[FILE…]",
    .n_max = UINT_MAX,
    .summary = "Show where time is spent, as a table or a tree",
    .notes =
        "FILE is a perf.data file, a folder of perf record --threads, or - for a stream on "
        "standard "
        "input. Without FILE it shows what the running profd has recorded, by default the last "
        "five "
        "minutes.\n\n"
        "SELF is the share of samples that were taken in the row itself; TOTAL includes what it "
        "called. SAMPLES is the number of samples behind SELF. Shares are computed from periods, "
        "as in perf report, unless --count is given.\n\n"
        "Exit status: 8 when a part of the window is missing, 5 when no sample matches.",
    .options = report_options,
    .settings_size = sizeof(ReportSettings),
    .run = report_run,
    .done = report_settings_done,
};
