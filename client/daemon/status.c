/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl status`: one screen for the engineer on call. First the daemon as a whole, problems
 * before everything else, then a block for each session. With --check the exit status shows whether
 * anything is degraded, for monitoring.
 */

typedef struct StatusSettings {
    bool check;
} StatusSettings;

static bool status_session_is_ill(const json_t *session) {
    return json_array_size(reply_member(session, "degraded")) > 0 ||
           strcmp(reply_string(session, "state"), "failed") == 0;
}

static bool status_is_degraded(const json_t *status) {
    const json_t *session;
    size_t i;

    json_array_foreach(reply_member(status, "sessions"), i,
                       session) if (status_session_is_ill(session)) return true;
    return json_array_size(reply_member(status, "degraded")) > 0;
}

static void status_show_title(const Screen *s, const json_t *status, Buffer *text,
                              uint64_t now_us) {
    Color color = status_is_degraded(status) ? COLOR_WARNING : COLOR_GOOD;

    if (strcmp(reply_string(status, "state"), "recording") != 0)
        color = color == COLOR_GOOD ? COLOR_NONE : color;
    session_put_title(text, status, now_us);
    text_putc(text, '\0');
    if (!buffer_error(text))
        screen_title(s, color, "profd", (const char *)text->data);
    buffer_clear(text);
}

/* Less than this is not worth showing. */
#define SCAN_SHOWN_PERCENT 0.1

static void status_show_cost(const Screen *s, const json_t *status, Buffer *text) {
    uint64_t restarts = reply_count(status, "restarts");

    if (reply_has(status, "cpuPercent"))
        text_printf(text, "%.2f%% of a CPU", reply_number(status, "cpuPercent"));
    if (reply_has(status, "scanCpuPercent") &&
        reply_number(status, "scanCpuPercent") >= SCAN_SHOWN_PERCENT)
        text_printf(text, ", %.2f%% of it to read processes",
                    reply_number(status, "scanCpuPercent"));
    if (reply_has(status, "memoryBytes")) {
        text_puts(text, text->size > 0 ? ", " : "");
        figure_size(text, reply_count(status, "memoryBytes"));
        text_puts(text, " of memory");
    }
    if (restarts > 0)
        text_printf(text, "%srecorder restarted %" PRIu64 " %s", text->size > 0 ? ", " : "",
                    restarts, restarts == 1 ? "time" : "times");
    if (text->size > 0)
        screen_buffer(s, "Cost", text);
}

static void status_show_unidentified(const Screen *s, const json_t *status) {
    uint64_t n = reply_has(status, "unidentified") ? reply_count(status, "unidentified") : 0;

    if (n > 0)
        screen_printf(s, "Unnamed",
                      "%" PRIu64 " mapped %s no build id, functions in %s have no names", n,
                      n == 1 ? "file has" : "files have", n == 1 ? "it" : "them");
}

static void status_share(Buffer *text, uint64_t used, uint64_t limit) {
    figure_size(text, used);
    if (limit == 0)
        return;
    text_puts(text, " of ");
    figure_size(text, limit);
    text_printf(text, " (%.0f%%)", 100.0 * (double)used / (double)limit);
}

static void status_show_store(const Screen *s, const json_t *store, Buffer *text, uint64_t now_us) {
    status_share(text, reply_count(store, "usedBytes"), reply_count(store, "limitBytes"));
    text_printf(text, " in %s%s, ", reply_string(store, "path"),
                reply_bool(store, "volatile") ? " (volatile)" : "");
    figure_size(text, reply_count(store, "freeBytes"));
    text_puts(text, " free on its file system");
    screen_buffer(s, "Disk", text);
    if (reply_has(store, "oldestUsec") || reply_has(store, "reachUsec")) {
        if (reply_has(store, "oldestUsec")) {
            text_puts(text, "back to ");
            figure_since(text, reply_count(store, "oldestUsec"), now_us);
        }
        if (reply_has(store, "reachUsec")) {
            text_puts(text, reply_has(store, "oldestUsec") ? "; at this rate the disk holds "
                                                           : "at this rate the disk holds ");
            figure_span(text, reply_count(store, "reachUsec"));
        }
        screen_buffer(s, "Window", text);
    }
    if (reply_count(store, "snapshotLimitBytes") > 0) {
        status_share(text, reply_count(store, "snapshotBytes"),
                     reply_count(store, "snapshotLimitBytes"));
        screen_buffer(s, "Snapshots", text);
    }
    if (reply_count(store, "binaryLimitBytes") > 0) {
        status_share(text, reply_count(store, "binaryBytes"),
                     reply_count(store, "binaryLimitBytes"));
        text_printf(text, " of %" PRIu64 " programs", reply_count(store, "binaries"));
        screen_buffer(s, "Symbols", text);
    }
}

static void status_show(Context *c, const json_t *status) {
    _cleanup_(buffer_done) Buffer text = {};
    const json_t *sessions = reply_member(status, "sessions"), *session;
    uint64_t now_us = figure_now_us();
    Screen s = screen_of(c);
    size_t i;

    status_show_title(&s, status, &text, now_us);
    session_show_degraded(&s, status);
    status_show_cost(&s, status, &text);
    status_show_unidentified(&s, status);
    if (reply_member(status, "store"))
        status_show_store(&s, reply_member(status, "store"), &text, now_us);
    json_array_foreach(sessions, i, session) {
        text_putc(s.out, '\n');
        session_show(&s, session, false, now_us);
    }
    if (!sessions && !c->no_legend)
        screen_line(&s, "Hidden", COLOR_NONE,
                    "sessions and store are shown to root and the group profd-read.");
}

static int status_run(Context *c, void *settings, char **arguments) {
    const StatusSettings *o = settings;
    _cleanup_json_ json_t *status = NULL;
    int r = remote_ask(c, "GetStatus", json_object(), &status);

    if (r != STATUS_OK)
        return r;
    if (c->json)
        r = reply_print(c, status);
    else if (!o->check || !c->quiet) {
        context_page(c);
        status_show(c, status);
    }
    if (r == STATUS_OK && o->check && status_is_degraded(status))
        r = STATUS_DEGRADED;
    return r;
}

static const Option status_options[] = {
    {0, "check", NULL, "End with status 7 when anything is degraded; with --quiet print nothing",
     option_flag, offsetof(StatusSettings, check)},
    {},
};

const Command command_status = {
    .name = "status",
    .arguments = "",
    .summary = "Show the daemon and its sessions: since when they record, and how far back",
    .notes = "Prints a remedy beside each reason why something is degraded. 'Window' is how "
             "far\nback a snapshot can reach.",
    .options = status_options,
    .settings_size = sizeof(StatusSettings),
    .run = status_run,
};
