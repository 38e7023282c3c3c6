/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/gateway/gateway-view.h"

#include <inttypes.h>

#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/frame/text-table.h"
#include "client/remote/reply.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The state of the gateway on one screen: does it run, does it follow profd, one line for each
 * destination, and below them what is wrong with a remedy. Strings of the state were escaped when
 * it was read.
 */

const char *const gateway_life_names[GATEWAY_LIVES] = {
    [GATEWAY_RUNNING] = "running",
    [GATEWAY_STALE] = "stale",
    [GATEWAY_GONE] = "gone",
};

/* clang-format off */
static const Column columns[] = {
    {.name = "DESTINATION", .shrinks = true},
    {.name = "TYPE",    .drops = 5},
    {.name = "STATE"},
    {.name = "LIVE UNTIL", .drops = 6},
    {.name = "LAG",     .right = true},
    {.name = "BACKLOG", .right = true},
    {.name = "SAMPLES", .right = true, .drops = 4},
    {.name = "SENT",    .right = true, .drops = 3},
    {.name = "OTHER",   .right = true, .drops = 1},
    {.name = "REFUSED", .right = true},
    {.name = "EXPIRED", .right = true, .drops = 2},
    {.name = "DELETED", .right = true, .drops = 2},
    {},
};
/* clang-format on */

static const char *gateway_view_state(const json_t *send) {
    if (reply_bool(send, "up"))
        return reply_count(send, "backlogUsec") > 0 ? "behind" : "up";
    if (*reply_string(send, "lastError"))
        return "failing";
    return "new";
}

static bool gateway_view_is_failing(const json_t *send) {
    return !reply_bool(send, "up") && *reply_string(send, "lastError");
}

bool gateway_view_is_degraded(const json_t *status) {
    const json_t *send;
    size_t i;

    json_array_foreach(reply_member(status, "destinations"), i,
                       send) if (gateway_view_is_failing(send)) return true;
    return !reply_bool(reply_member(status, "source"), "connected") ||
           reply_bool(status, "outdated") || reply_count(status, "configProblems") > 0;
}

static void gateway_view_span_cell(Table *table, const json_t *send, const char *name,
                                   Buffer *text) {
    if (reply_count(send, name) > 0)
        figure_span_tenths(text, reply_count(send, name));
    else
        text_putc(text, '-');
    table_buffer(table, text);
}

static void gateway_view_row(Table *table, const json_t *send, Buffer *text) {
    table_shown(table, reply_string(send, "name"));
    table_shown(table, reply_string(send, "type"));
    table_shown(table, gateway_view_state(send));
    table_color(table, gateway_view_is_failing(send) ? COLOR_BAD
                       : reply_bool(send, "up")      ? COLOR_GOOD
                                                     : COLOR_NONE);
    if (reply_has(send, "liveUntilUsec"))
        figure_moment_short(text, reply_count(send, "liveUntilUsec"));
    else
        text_putc(text, '-');
    table_buffer(table, text);
    gateway_view_span_cell(table, send, "lagUsec", text);
    gateway_view_span_cell(table, send, "backlogUsec", text);
    table_count(table, reply_count(send, "sentSamples"));
    figure_size(text, reply_count(send, "sentBytes"));
    table_buffer(table, text);
    table_count(table, reply_count(send, "otherSamples"));
    table_count(table, reply_count(send, "refusedSamples"));
    table_color(table, reply_count(send, "refusedSamples") > 0 ? COLOR_WARNING : COLOR_NONE);
    gateway_view_span_cell(table, send, "expiredUsec", text);
    gateway_view_span_cell(table, send, "deletedUsec", text);
}

static void gateway_view_title(const Screen *s, const json_t *status, GatewayLife life,
                               Buffer *text, uint64_t now_us) {
    static const Color colors[] = {
        [GATEWAY_RUNNING] = COLOR_GOOD, [GATEWAY_STALE] = COLOR_BAD, [GATEWAY_GONE] = COLOR_BAD};
    bool warns = life == GATEWAY_RUNNING && gateway_view_is_degraded(status);

    text_printf(text, "%s on %s: ", reply_string(status, "version"), reply_string(status, "host"));
    if (life == GATEWAY_RUNNING) {
        text_puts(text, "running since ");
        figure_since(text, reply_count(status, "sinceUsec"), now_us);
    } else {
        text_puts(text,
                  life == GATEWAY_GONE ? "not running, last seen " : "does not answer, last seen ");
        figure_since(text, reply_count(status, "nowUsec"), now_us);
    }
    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_title(s, warns ? COLOR_WARNING : colors[life], "profd-gateway",
                     (const char *)text->data);
    buffer_clear(text);
}

static void gateway_view_source(const Screen *s, const json_t *source, Buffer *text,
                                uint64_t now_us) {
    if (!reply_bool(source, "connected")) {
        text_printf(text, "%s%s", reply_bool(source, "hangs") ? "" : "profd is away: ",
                    reply_string(source, "problem"));
    } else {
        text_printf(text, "follows profd, %" PRIu64 " samples in %" PRIu64 " intervals, ",
                    reply_count(source, "samples"), reply_count(source, "intervals"));
        if (reply_count(source, "lost") == 0)
            text_puts(text, "none lost");
        else
            text_printf(text, "%" PRIu64 " lost", reply_count(source, "lost"));
        if (reply_has(source, "untilUsec")) {
            text_puts(text, "; until ");
            figure_ago(text, reply_count(source, "untilUsec"), now_us);
        }
    }
    screen_buffer(s, "Source", text);
}

static void gateway_view_cost(const Screen *s, const json_t *status, Buffer *text) {
    uint64_t span_us = reply_count(status, "nowUsec") - reply_count(status, "sinceUsec");

    /* The rate of the first seconds means nothing. */
    if (span_us > 10 * US_PER_SECOND && span_us < UINT64_MAX / 2)
        text_printf(text, "%.2f%% of a CPU, ",
                    100.0 * (double)reply_count(status, "cpuUsec") / (double)span_us);
    figure_size(text, reply_count(status, "residentBytes"));
    text_puts(text, " of memory");
    screen_buffer(s, "Cost", text);
}

static void gateway_view_config(const Screen *s, const json_t *status) {
    uint64_t problems = reply_count(status, "configProblems");

    if (reply_bool(status, "outdated"))
        screen_line(s, "Config", COLOR_WARNING,
                    "The last reload was refused. 'profd-gateway --check-config' says why.");
    if (problems > 0)
        screen_printf(s, "Config",
                      "%" PRIu64 " problem%s. 'profd-gateway --check-config' shows %s.", problems,
                      problems == 1 ? "" : "s", problems == 1 ? "it" : "them");
}

static void gateway_view_error(const Screen *s, const json_t *send, Buffer *text, uint64_t now_us) {
    if (!*reply_string(send, "lastError"))
        return;
    text_printf(text, "%s (", reply_string(send, "lastError"));
    figure_ago(text, reply_count(send, "lastErrorUsec"), now_us);
    if (reply_has(send, "retryUsec")) {
        text_puts(text, ", next try ");
        figure_ago(text, reply_count(send, "retryUsec"), now_us);
    }
    text_printf(text, "). %s", reply_string(send, "remedy"));
    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_line(s, reply_string(send, "name"),
                    gateway_view_is_failing(send) ? COLOR_BAD : COLOR_NONE,
                    (const char *)text->data);
    buffer_clear(text);
}

static void gateway_view_destinations(Context *c, const Screen *s, const json_t *status,
                                      uint64_t now_us) {
    const json_t *sends = reply_member(status, "destinations"), *send;
    _cleanup_(table_freep) Table *table = NULL;
    _cleanup_(buffer_done) Buffer text = {};
    size_t i;

    if (json_array_size(sends) == 0) {
        screen_line(s, "Sends", COLOR_NONE, "nothing: gateway.conf(5) has no [Send NAME]");
        return;
    }
    text_putc(s->out, '\n');
    if (table_new(c, columns, &table) < 0)
        return;
    json_array_foreach(sends, i, send) gateway_view_row(table, send, &text);
    (void)table_print(table, s->out);
    json_array_foreach(sends, i, send) gateway_view_error(s, send, &text, now_us);
}

void gateway_view_show(Context *c, const json_t *status, GatewayLife life, uint64_t now_us) {
    _cleanup_(buffer_done) Buffer text = {};
    Screen s = screen_of(c);

    gateway_view_title(&s, status, life, &text, now_us);
    gateway_view_source(&s, reply_member(status, "source"), &text, now_us);
    gateway_view_cost(&s, status, &text);
    gateway_view_config(&s, status);
    gateway_view_destinations(c, &s, status, now_us);
}
