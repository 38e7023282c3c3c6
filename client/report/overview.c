/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/report/overview.h"

#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/frame/text-table.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "client/view/view.h"
#include "protocol/value.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The first screen of profctl, for somebody who has just logged in: three lines about the daemon,
 * the hottest units and functions of the last minute, and what to run next.
 */

enum { HOTTEST_MAX = 5 };

#define LAST_US (60 * US_PER_SECOND)

static const struct {
    const char *command, *text;
} next[] = {
    {"profctl report", "where the last five minutes went"},
    {"profctl report --by unit", "the same by unit; -u UNIT shows one"},
    {"profctl flamegraph", "a page with all stacks, for a browser"},
    {"profctl snapshot --last 10m", "keep the last ten minutes"},
    {"profctl status", "how profd is, and how far back it reaches"},
    {"profctl help", "all commands"},
};

static void overview_put_title(const Screen *s, const json_t *status, Buffer *text) {
    bool is_ill = json_array_size(reply_member(status, "degraded")) > 0;
    const json_t *session;
    size_t i;

    json_array_foreach(reply_member(status, "sessions"), i, session) is_ill |=
        json_array_size(reply_member(session, "degraded")) > 0;
    session_put_title(text, status, figure_now_us());
    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_title(s, is_ill ? COLOR_WARNING : COLOR_GOOD, "profd", (const char *)text->data);
    buffer_clear(text);
    if (is_ill)
        screen_line(s, "Degraded", COLOR_WARNING, "'profctl status' shows why, and what helps.");
}

static void overview_put_sessions(const Screen *s, const json_t *status, Buffer *text) {
    const json_t *session;
    size_t i;

    json_array_foreach(reply_member(status, "sessions"), i, session) {
        text_puts(text, i > 0 ? "; " : "");
        text_printf(text, "%s: %s", reply_string(session, "name"),
                    reply_string(session, "describe"));
        if (strcmp(reply_string(session, "state"), "active") != 0)
            text_printf(text, " (%s)", reply_string(session, "state"));
    }
    if (text->size > 0)
        screen_buffer(s, "Records", text);
}

static void overview_put_window(const Screen *s, const json_t *status, Buffer *text) {
    const json_t *store = reply_member(status, "store");

    if (!store)
        return;
    if (reply_has(store, "oldestUsec")) {
        text_puts(text, "back to ");
        figure_since(text, reply_count(store, "oldestUsec"), figure_now_us());
        text_puts(text, ", ");
    }
    figure_size(text, reply_count(store, "usedBytes"));
    text_puts(text, " of ");
    figure_size(text, reply_count(store, "limitBytes"));
    screen_buffer(s, "Window", text);
}

static int overview_print_hottest(Context *c, const View *view, RowKeys keys, const char *title) {
    const Column columns[] = {
        {.name = "SHARE", .right = true},
        {.name = "SAMPLES", .right = true},
        {.name = title, .shrinks = true},
        {.name = keys.n > 1 ? "IN" : "", .shrinks = true},
        {},
    };
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    int r = row_table_new(view->profile, view->names, &keys, view->event, &rows);

    if (r == 0)
        r = row_table_sort(rows, ROW_BY_SELF, true);
    if (r == 0)
        r = table_new(c, columns, &table);
    for (size_t i = 0; r == 0 && i < rows->n && i < HOTTEST_MAX; i++) {
        const ProfileRow *row = &rows->rows[rows->order[i]];

        if (row->samples == 0)
            break;
        table_printf(table, "%.1f%%", 100.0 * (double)row->period / (double)rows->period);
        figure_count(&text, row->samples);
        table_buffer(table, &text);
        for (size_t k = 0; k < 2; k++) {
            buffer_clear(&text);
            if (k < keys.n)
                row_table_put(rows, row, keys.items[k], &text);
            if (k < keys.n && text.size == 0)
                text_puts(&text, "(none)");
            table_bytes(table, buffer_bytes(&text));
        }
        buffer_clear(&text);
    }
    text_putc(&c->out.buffer, '\n');
    return r < 0 ? r : table_print(table, &c->out.buffer);
}

static int overview_print_view(Context *c) {
    const ViewSettings settings = {};
    const ViewRequest request = {.keys = profile_key_bit(PROFILE_UNIT),
                                 .last_us = LAST_US,
                                 .merges_unnamed = true,
                                 .may_be_nothing = true,
                                 .ignores_gaps = true};
    _cleanup_(view_done) View view = {};
    char *none[] = {NULL};
    int r, status = view_load(c, &settings, none, &request, &view);

    if (!view.profile)
        return status;
    text_putc(&c->out.buffer, '\n');
    text_escape_str(&c->out.buffer, view.subtitle);
    text_puts(&c->out.buffer, ".\n");
    if (view.event == PROFILE_NONE)
        return STATUS_OK;
    r = overview_print_hottest(c, &view, (RowKeys){{PROFILE_UNIT}, 1}, "UNIT");
    if (r == 0)
        r = overview_print_hottest(c, &view, (RowKeys){{ROW_SYMBOL, ROW_DSO}, 2}, "FUNCTION");
    return r == 0 ? STATUS_OK
                  : complain(STATUS_FAILED, "Failed to show what is hot: %s.", strerror(-r));
}

static void overview_print_next(Context *c) {
    Buffer *out = &c->out.buffer;

    text_puts(out, "\nNext:\n");
    for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
        size_t start = out->size;

        text_printf(out, "  %-29s%s", next[i].command, next[i].text);
        if (buffer_error(out))
            return;
        if (context_width(c) > 0)
            out->size = MIN(out->size, start + context_width(c));
        text_putc(out, '\n');
    }
}

/* What can be done where profd does not run. */
static int overview_print_without(Context *c, int status) {
    screen_wrap(&c->out.buffer,
                "Recordings can be looked at without profd: 'profctl report perf.data', or "
                "'profctl flamegraph perf.data'. 'profctl doctor' checks this host, 'profctl help' "
                "lists all commands.",
                0, 0, context_width(c));
    return status;
}

int overview_show(Context *c) {
    _cleanup_json_ json_t *status = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    Screen s = screen_of(c);
    int r = remote_ask(c, "GetStatus", json_object(), &status);

    if (r != STATUS_OK)
        return overview_print_without(c, r);
    overview_put_title(&s, status, &text);
    overview_put_sessions(&s, status, &text);
    overview_put_window(&s, status, &text);
    r = overview_print_view(c);
    overview_print_next(c);
    return r;
}
