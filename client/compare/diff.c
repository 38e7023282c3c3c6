/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "client/compare/compare.h"
#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/frame/text-table.h"
#include "client/report/picture-file.h"
#include "page/page.h"
#include "util/text.h"

/*
 * `profctl diff`: what grew and what shrank between two recordings or windows. Figures are shares
 * of all samples, or load for each second; rows that differ by no more than chance are left out.
 */

enum { FIGURES = 4, KEYS_MAX = ROW_KEYS };

typedef struct DiffSettings {
    ViewSettings view;
    Baseline baseline;
    bool rate, total, all, page;
    PictureOptions picture;
} DiffSettings;

typedef struct DiffWork {
    Context *context;
    const DiffSettings *settings;
    View before, after;
    uint32_t event;
    ProfileDiff *diff;
} DiffWork;

static void diff_work_done(DiffWork *work) {
    view_done(&work->before);
    view_done(&work->after);
    profile_diff_free(work->diff);
}

static int diff_check(const Context *c, const DiffSettings *s, char **files) {
    size_t n = 0;

    while (files[n])
        n++;
    if (n == 1 && !s->baseline.is_given)
        return complain(STATUS_USAGE, "Give what the recording is compared with: another one, or "
                                      "--baseline.");
    if (n > 2 && !s->baseline.is_given)
        return complain(STATUS_USAGE,
                        "Give two recordings, or --baseline for what is earlier in all of them.");
    if (row_keys_hold(&s->view.by, PROFILE_TIME) || row_keys_hold(&s->view.by, PROFILE_EVENT))
        return complain(STATUS_USAGE,
                        "A comparison is of one event, over time; --by cannot have these keys.");
    if (!s->page && (s->picture.output || s->picture.force))
        return complain(STATUS_USAGE, "--output is for --flamegraph.");
    if (s->page && c->json != JSON_OFF)
        return complain(STATUS_USAGE, "Give either --flamegraph or --json.");
    if (s->page && (s->rate || s->total || s->all))
        return complain(STATUS_USAGE, "--rate, --total and --all are for the table, and a "
                                      "--flamegraph shows shares of all functions.");
    return STATUS_OK;
}

static ViewRequest diff_request(const ViewSettings *view) {
    ViewRequest request = {.keys = profile_key_bit(PROFILE_TIME), .merges_unnamed = true};
    uint64_t window_us = view->last.us;

    if (view->since.set && view->until.set)
        window_us = view->until.us - view->since.us;
    request.bucket_ns = compare_bucket_ns(window_us);
    return request;
}

/* Compares a window with an earlier one of the same source. */
static int diff_load_windows(DiffWork *work, char **files) {
    const Baseline *baseline = &work->settings->baseline;
    ViewSettings view;
    ViewRequest request;
    int r,
        status = compare_settle_window(&work->settings->view, files, 0, baseline->shift_us, &view);

    if (status != STATUS_OK)
        return status;
    request = diff_request(&view);
    status = view_load(work->context, &view, files, &request, &work->after);
    if (!work->after.profile)
        return status;
    r = compare_load_earlier(work->context, &view, files, &request, &work->after,
                             baseline->shift_us, &work->before);
    if (r == STATUS_NOT_FOUND && !*files)
        return complain(r, "There is nothing to compare with: profd did not record the time of "
                           "the baseline.");
    return r != STATUS_OK ? r : status;
}

/* The older side is the recording of --baseline, or the first of two recordings. */
static int diff_load_files(DiffWork *work, char **before, char **after) {
    const ViewSettings *view = &work->settings->view;
    ViewRequest request = diff_request(view);
    int r, status = view_load(work->context, view, after, &request, &work->after);

    if (!work->after.profile)
        return status;
    r = view_load(work->context, view, before, &request, &work->before);
    return r != STATUS_OK ? r : status;
}

static int diff_load(DiffWork *work, char **files) {
    const Baseline *baseline = &work->settings->baseline;
    char *first[] = {files[0], NULL}, *of_option[] = {(char *)baseline->file, NULL};

    if (baseline->file)
        return diff_load_files(work, of_option, files);
    if (!files[0] || baseline->is_given)
        return diff_load_windows(work, files);
    return diff_load_files(work, first, files + 1);
}

static int diff_compare_sides(DiffWork *work) {
    const DiffSettings *s = work->settings;
    DiffOptions options = {.keys = s->view.by, .total = s->total, .by_rate = s->rate};

    if (options.keys.n == 0)
        options.keys = (RowKeys){{ROW_DSO, ROW_SYMBOL}, 2};
    options.by_period = view_by_period(&s->view, true);
    return compare_views(&work->before, &work->after, work->event, &options, &work->diff) < 0
               ? compare_no_memory()
               : STATUS_OK;
}

static double diff_shown(const DiffWork *work, double figure) {
    if (!work->settings->rate)
        return 100 * figure;
    return work->diff->options.by_period ? compare_rate(&work->after, work->event, figure) : figure;
}

static void diff_put_side(const DiffWork *work, const char *name, const View *view) {
    Buffer *out = &work->context->out.buffer;
    _cleanup_(buffer_done) Buffer text = {};

    text_printf(&text, "%s: ", name);
    text_escape_str(&text, view->title);
    text_puts(&text, ": ");
    text_escape_str(&text, view->subtitle);
    text_puts(&text, ".");
    text_putc(&text, '\0');
    if (!buffer_error(&text))
        screen_wrap(out, (const char *)text.data, 0, 8,
                    context_width(work->context) ?: (size_t)SHRT_MAX);
}

static void diff_put_sentence(const DiffWork *work, Buffer *text) {
    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_wrap(&work->context->out.buffer, (const char *)text->data, 0, 0,
                    context_width(work->context) ?: (size_t)SHRT_MAX);
    buffer_clear(text);
}

static void diff_put_verdict(const DiffWork *work) {
    const ProfileDiff *diff = work->diff;
    _cleanup_(buffer_done) Buffer text = {};

    text_putc(&work->context->out.buffer, '\n');
    if (diff->n_significant == 0)
        text_puts(&text, "Nothing changed by more than chance.");
    else {
        figure_count(&text, diff->n_significant);
        text_puts(&text, " of ");
        figure_count(&text, diff->n_rows);
        text_puts(&text, " rows changed by more than chance; at most one in twenty of such rows "
                         "is chance after all.");
    }
    diff_put_sentence(work, &text);
    if (diff->is_spread_known)
        return;
    text_puts(&text, "The windows are too short to see how much load varies anyway; chance is that "
                     "of counts alone.");
    diff_put_sentence(work, &text);
}

static void diff_put_row(const DiffWork *work, const DiffRow *row, Table *table, Buffer *text) {
    const ProfileDiff *diff = work->diff;
    const char *percent = work->settings->rate ? "" : "%";
    double change = diff_shown(work, row->after) - diff_shown(work, row->before);

    table_printf(table, "%.2f%s", diff_shown(work, row->before), percent);
    table_printf(table, "%.2f%s", diff_shown(work, row->after), percent);
    table_printf(table, "%+.2f%s", change, percent);
    if (row->is_significant)
        table_color(table, change > 0 ? COLOR_BAD : COLOR_GOOD);
    table_printf(table, "%.2f", diff_shown(work, row->error));
    if (work->settings->all)
        table_printf(table, "%.2g", row->q);
    for (size_t i = 0; i < diff->options.keys.n; i++) {
        Bytes value = text_set_get(diff->texts, row->values[i]);

        text_escape(text, value);
        if (value.size == 0)
            text_puts(text, "-");
        table_buffer(table, text);
    }
}

static int diff_make_table(const DiffWork *work, Table **ret) {
    const RowKeys *keys = &work->diff->options.keys;
    Column columns[FIGURES + 2 + KEYS_MAX] = {{.name = "BEFORE", .right = true},
                                              {.name = "AFTER", .right = true},
                                              {.name = "CHANGE", .right = true},
                                              {.name = "±", .right = true}};
    char names[KEYS_MAX][16] = {};
    size_t n = FIGURES;

    if (work->settings->all)
        columns[n++] = (Column){.name = "Q", .right = true};
    for (size_t i = 0; i < keys->n; i++) {
        const char *name = row_key_name(keys->items[i]);

        for (size_t k = 0; name[k] && k + 1 < sizeof(names[i]); k++)
            names[i][k] = (char)(name[k] - 'a' + 'A');
        columns[n++] =
            (Column){.name = names[i], .shrinks = true, .is_main = keys->items[i] == ROW_SYMBOL};
    }
    return table_new(work->context, columns, ret);
}

static int diff_print_text(DiffWork *work) {
    Context *c = work->context;
    const ProfileDiff *diff = work->diff;
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    bool any = false;

    context_page(c);
    if (!c->no_legend) {
        diff_put_side(work, "Before", &work->before);
        diff_put_side(work, "After", &work->after);
    }
    if (diff_make_table(work, &table) < 0)
        return compare_no_memory();
    for (size_t i = 0; i < diff->n_rows; i++)
        if (diff->rows[i].is_significant || work->settings->all) {
            diff_put_row(work, &diff->rows[i], table, &text);
            any = true;
        }
    if (any)
        text_putc(&c->out.buffer, '\n');
    if (any && table_print(table, &c->out.buffer) < 0)
        return compare_no_memory();
    if (!c->no_legend || !any)
        diff_put_verdict(work);
    return STATUS_OK;
}

static void diff_json_row(const DiffWork *work, Fields *f, const DiffRow *row) {
    const ProfileDiff *diff = work->diff;

    for (size_t i = 0; i < diff->options.keys.n; i++)
        fields_bytes(f, row_key_name(diff->options.keys.items[i]),
                     text_set_get(diff->texts, row->values[i]));
    fields_u64(f, "samplesBefore", row->before_samples);
    fields_u64(f, "samplesAfter", row->after_samples);
    fields_u64(f, "periodBefore", row->before_period);
    fields_u64(f, "periodAfter", row->after_period);
    fields_double(f, "before", row->before);
    fields_double(f, "after", row->after);
    fields_double(f, "error", row->error);
    fields_double(f, "p", row->p);
    fields_double(f, "q", row->q);
    fields_bool(f, "significant", row->is_significant);
}

static int diff_print_json(DiffWork *work) {
    const ProfileDiff *diff = work->diff;
    Fields f = fields_to(&work->context->out.buffer, context_fields_format(work->context));

    fields_begin_object(&f, NULL);
    compare_put_side(&f, "before", &work->before,
                     compare_event(&work->after, &work->before, work->event));
    compare_put_side(&f, "after", &work->after, work->event);
    fields_bytes(&f, "event", view_event_name(&work->after, work->event));
    fields_str(&f, "figures", work->settings->rate ? "rate" : "share");
    fields_bool(&f, "spreadKnown", diff->is_spread_known);
    fields_u64(&f, "significant", diff->n_significant);
    for (size_t i = fields_begin_list(&f, "rows"); fields_next(&f, i, diff->n_rows); i++)
        diff_json_row(work, &f, &diff->rows[i]);
    fields_end_object(&f);
    text_putc(&work->context->out.buffer, '\n');
    return STATUS_OK;
}

static PageInput diff_page_input(const DiffWork *work, const View *view, uint32_t event) {
    return (PageInput){.profile = view->profile,
                       .names = view->names,
                       .event = event,
                       .by_period = view_by_period(&work->settings->view, true),
                       .title = view->title,
                       .subtitle = view->page_subtitle,
                       .zone_min = view->zone_min};
}

static int diff_write_page(PictureSink sink, void *sink_arg, void *arg) {
    const DiffWork *work = arg;
    const char *of_after = work->after.page_subtitle ?: "";
    _cleanup_free_ char *subtitle = NULL;
    PageInput after = diff_page_input(work, &work->after, work->event),
              before = diff_page_input(work, &work->before,
                                       compare_event(&work->after, &work->before, work->event));
    const PageFlameOptions options = {.before = &before};

    if (asprintf(&subtitle, "%s%scompared with %s: %s", of_after, *of_after ? "; " : "",
                 work->before.title, work->before.page_subtitle ?: "") < 0) {
        subtitle = NULL;
        return -ENOMEM;
    }
    after.subtitle = subtitle;
    return page_flame_graph(&after, &options, sink, sink_arg);
}

static int diff_print(DiffWork *work) {
    static const Picture picture = {.name = "diff", .suffix = ".html", .is_file_default = true};
    Context *c = work->context;
    int r;

    if (work->settings->page) {
        r = picture_check(c, &picture, &work->settings->picture);
        return r != STATUS_OK ? r
                              : picture_write(c, &picture, &work->settings->picture, &work->after,
                                              diff_write_page, work);
    }
    r = diff_compare_sides(work);
    if (r != STATUS_OK)
        return r;
    return c->json != JSON_OFF ? diff_print_json(work) : diff_print_text(work);
}

/* The sides have no event in common, or --event chooses it. */
static int diff_complain_event(const DiffWork *work) {
    _cleanup_(buffer_done) Buffer after = {}, before = {};

    text_escape(&after, view_event_name(&work->after, work->event));
    text_escape(&before, view_event_name(&work->before, work->before.event));
    text_putc(&after, '\0');
    text_putc(&before, '\0');
    if (buffer_error(&after) || buffer_error(&before))
        return compare_no_memory();
    return complain(STATUS_NOT_FOUND,
                    "There is nothing to compare with: the samples are of %s, and those before are "
                    "of %s; --event chooses an event that both have.",
                    (const char *)after.data, (const char *)before.data);
}

static int diff_run(Context *c, void *settings, char **arguments) {
    const DiffSettings *s = settings;
    _cleanup_(diff_work_done) DiffWork work = {.context = c, .settings = s};
    int r, status = diff_check(c, s, arguments);

    if (status != STATUS_OK)
        return status;
    status = diff_load(&work, arguments);
    if (!work.after.profile || !work.before.profile)
        return status;
    if (work.before.profile->samples == 0)
        return complain(STATUS_NOT_FOUND, "There are no samples in the window to compare with.");
    work.event = picture_event(c, &work.after);
    if (compare_event(&work.after, &work.before, work.event) == PROFILE_NONE)
        return diff_complain_event(&work);
    r = diff_print(&work);
    return r != STATUS_OK ? r : status;
}

static void diff_settings_done(void *settings) {
    view_settings_done(&((DiffSettings *)settings)->view);
}

/* clang-format off */
static const Option diff_options[] = {
    {'b', "baseline",   "yesterday|SPAN|FILE", "Compare with the same window a day or a SPAN before, or with FILE", option_baseline, offsetof(DiffSettings, baseline)},
    {0,   "rate",       NULL, "Compare load for each second, not shares of all samples", option_flag, offsetof(DiffSettings, rate)},
    {0,   "total",      NULL, "Count samples of what a function called, too", option_flag, offsetof(DiffSettings, total)},
    {'a', "all",        NULL, "Show rows without a significant change, too", option_flag, offsetof(DiffSettings, all)},
    {0,   "flamegraph", NULL, "Write a page with a flame graph: red grew, blue shrank", option_flag, offsetof(DiffSettings, page)},
    PICTURE_OPTIONS(DiffSettings, picture)
    VIEW_BY_OPTIONS(DiffSettings, view)
    VIEW_OPTIONS(DiffSettings, view)
    {},
};
/* clang-format on */

const Command command_diff = {
    .name = "diff",
    .group = COMMAND_VIEW,
    .arguments = "[[BEFORE] AFTER…]",
    .n_max = UINT_MAX,
    .summary = "Show what grew and what shrank between two recordings or windows",
    .notes =
        "BEFORE and AFTER are recordings. With --baseline all recordings are AFTER, and it names "
        "what they are compared with: another recording, or an earlier time in them, as in one "
        "of yesterday. Without a recording it compares windows of the running profd: the "
        "last five minutes, or that of the options, with the same time before.\n"
        "It shows a row if chance does not explain its change. The test knows how much the load "
        "varies within both windows, and that many rows are tested at once; see CHANGE AND CHANCE "
        "in profctl(1).",
    .options = diff_options,
    .settings_size = sizeof(DiffSettings),
    .run = diff_run,
    .done = diff_settings_done,
};
