/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/text-table.h"
#include "client/frame/timestamp.h"
#include "client/remote/coverage-text.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "protocol/value.h"
#include "util/text.h"

/* `profctl list`: one line for each session; with --segments one for each recorded segment, oldest
 * first. */

typedef struct ListSettings {
    bool segments;
    OptionTimestamp since, until;
} ListSettings;

/* clang-format off */
static const Column session_columns[] = {
    {.name = "SESSION"},
    {.name = "STATE"},
    {.name = "FOR",     .right = true, .drops = 3},
    {.name = "SAMPLES", .right = true, .drops = 4},
    {.name = "PER SEC", .right = true, .drops = 1},
    {.name = "LOST",    .right = true},
    {.name = "STORED",  .right = true, .drops = 2},
    {.name = "RECORDS", .shrinks = true},
    {},
};

/* A segment name begins with its number, which stays visible on a narrow terminal. */
static const Column segment_columns[] = {
    {.name = "SESSION"},
    {.name = "SINCE"},
    {.name = "FOR",     .right = true, .drops = 1},
    {.name = "SAMPLES", .right = true, .drops = 2},
    {.name = "LOST",    .right = true, .drops = 4},
    {.name = "SIZE",    .right = true, .drops = 3},
    {.name = "STATE", .drops = 6},
    {.name = "NOT RECORDED", .drops = 5},
    {.name = "SEGMENT", .shrinks = true},
    {},
};
/* clang-format on */

static void list_moment_cell(Table *table, const json_t *object, const char *name, Buffer *text) {
    if (reply_has(object, name))
        figure_moment_short(text, reply_count(object, name));
    else
        text_putc(text, '-');
    table_buffer(table, text);
}

/* From its sinceUsec to `until_us`; 0: unknown. */
static void list_span_cell(Table *table, const json_t *object, uint64_t until_us, Buffer *text) {
    uint64_t since_us = reply_count(object, "sinceUsec");

    if (since_us > 0 && until_us >= since_us)
        figure_span(text, until_us - since_us);
    else
        text_putc(text, '-');
    table_buffer(table, text);
}

static void list_size_cell(Table *table, const json_t *object, const char *name, Buffer *text) {
    figure_size(text, reply_count(object, name));
    table_buffer(table, text);
}

static void list_lost_cell(Table *table, const json_t *object) {
    table_count(table, reply_count(object, "lost"));
    table_color(table, reply_count(object, "lost") > 0 ? COLOR_WARNING : COLOR_NONE);
}

static void list_session_row(Table *table, const json_t *session, uint64_t now_us, Buffer *text) {
    bool degraded = json_array_size(reply_member(session, "degraded")) > 0;
    const char *state = reply_string(session, "state");
    bool active = strcmp(state, "active") == 0;

    table_shown(table, reply_string(session, "name"));
    table_shown(table, degraded && active ? "degraded" : state);
    table_color(table, session_color(session));
    list_span_cell(table, session, now_us, text);
    table_count(table, reply_count(session, "samples"));
    if (active)
        table_printf(table, "%.0f", reply_number(session, "samplesPerSecond"));
    else
        table_shown(table, "-");
    list_lost_cell(table, session);
    list_size_cell(table, session, "storedBytes", text);
    table_shown(table, reply_string(session, "describe"));
}

/* What was not recorded since the segment before. */
static void list_put_gap_before(const json_t *segment, Buffer *text) {
    const json_t *gap = reply_member(segment, "gapBefore");
    uint64_t since_us = gap ? reply_count(gap, "sinceUsec") : 0,
             until_us = gap ? reply_count(gap, "untilUsec") : 0;
    PdGapReason reason = PD_GAP_UNKNOWN;

    if (until_us <= since_us)
        return;
    text_puts(text, text->size > 0 ? ", " : "");
    figure_span_tenths(text, until_us - since_us);
    (void)pd_gap_reason_from_name(reply_string(gap, "reason"), &reason);
    text_printf(text, " before (%s)", pd_gap_reason_text(reason));
}

/* The length and reason of its gaps, and of that before it; empty if there are none. */
static void list_gaps_cell(Table *table, const json_t *segment, Buffer *text) {
    PdCoverage coverage;
    const PdGap *longest = NULL;
    bool any;

    if (!coverage_of_reply(segment, &coverage)) {
        table_shown(table, "not known");
        return;
    }
    for (size_t i = 0; i < coverage.n_gaps; i++) {
        const PdGap *gap = &coverage.gaps[i];

        if (pd_gap_counts(gap) &&
            (!longest || gap->to_ns - gap->from_ns > longest->to_ns - longest->from_ns))
            longest = gap;
    }
    if (longest) {
        figure_span_tenths(
            text, (coverage.to_ns - coverage.from_ns - pd_coverage_recorded_ns(&coverage)) / 1000);
        text_printf(text, " (%s)", pd_gap_reason_text(longest->reason));
    }
    list_put_gap_before(segment, text);
    any = text->size > 0;
    text_puts(text, any ? "" : "-");
    table_buffer(table, text);
    table_color(table, any ? COLOR_WARNING : COLOR_NONE);
    pd_coverage_done(&coverage);
}

static void list_segment_row(Table *table, const json_t *segment, uint64_t now_us, Buffer *text) {
    bool open = strcmp(reply_string(segment, "completeness"), "open") == 0;
    uint64_t until_us = reply_count(segment, "untilUsec");

    table_shown(table, reply_string(segment, "session"));
    list_moment_cell(table, segment, "sinceUsec", text);
    list_span_cell(table, segment, until_us == 0 && open ? now_us : until_us, text);
    table_count(table, reply_count(segment, "samples"));
    list_lost_cell(table, segment);
    list_size_cell(table, segment, "bytes", text);
    table_shown(table, reply_string(segment, "completeness"));
    list_gaps_cell(table, segment, text);
    table_shown(table, reply_string(segment, "name"));
}

static int list_print(Context *c, const json_t *list, bool segments) {
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    uint64_t now_us = figure_now_us();
    const json_t *item;
    size_t i;
    int r = table_new(c, segments ? segment_columns : session_columns, &table);

    if (r < 0)
        return r;
    json_array_foreach(list, i, item) if (segments) list_segment_row(table, item, now_us, &text);
    else list_session_row(table, item, now_us, &text);
    context_page(c);
    return table_print(table, &c->out.buffer);
}

static json_t *list_parameters_of(const ListSettings *o, const char *session) {
    json_t *parameters = json_object();

    if (session)
        value_set(&parameters, "session", remote_word(session));
    if (o->since.set)
        value_set(&parameters, "sinceUsec", json_integer((json_int_t)o->since.us));
    if (o->until.set)
        value_set(&parameters, "untilUsec", json_integer((json_int_t)o->until.us));
    return parameters;
}

static int list_run(Context *c, void *settings, char **arguments) {
    const ListSettings *o = settings;
    json_t *list = NULL;
    int r;

    if (!o->segments && (o->since.set || o->until.set))
        return complain(STATUS_USAGE, "--since and --until choose segments, add --segments.");
    r = remote_ask_list(c, o->segments ? "ListSegments" : "ListSessions",
                        list_parameters_of(o, arguments[0]), o->segments ? "segment" : "session",
                        &list);
    if (r == STATUS_OK && !c->json && list_print(c, list, o->segments) < 0)
        r = complain(STATUS_FAILED, "Failed to print the list: out of memory.");
    return reply_print_done(c, r, list);
}

/* clang-format off */
static const Option list_options[] = {
    {'s', "segments", NULL,   "List segments, the files that sessions recorded", option_flag,      offsetof(ListSettings, segments)},
    {'S', "since",    "TIME", "Only segments that end after this time",       option_timestamp, offsetof(ListSettings, since)},
    {'U', "until",    "TIME", "Only segments that begin before this time",       option_timestamp, offsetof(ListSettings, until)},
    {},
};
/* clang-format on */

const Command command_list = {
    .name = "list",
    .arguments = "[SESSION]",
    .n_max = 1,
    .summary = "List sessions, or the segments that they recorded",
    .options = list_options,
    .settings_size = sizeof(ListSettings),
    .run = list_run,
};
