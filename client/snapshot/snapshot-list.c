/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <pwd.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/screen.h"
#include "client/frame/text-table.h"
#include "client/remote/coverage-text.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/snapshot/snapshot-save.h"
#include "protocol/value.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * The snapshots that profd keeps: a table of all, a screen for one, and the commands `rm` and
 * `pin`. Several names are processed one after the other; the first failure is the exit status.
 */

static void snapshot_list_put_kept(Buffer *out, const json_t *snapshot) {
    uint64_t expires = reply_count(snapshot, "expiresUsec"), now = figure_now_us();

    if (reply_bool(snapshot, "pinned"))
        text_puts(out, "pinned");
    else if (expires == 0)
        text_puts(out, "-");
    else if (expires <= now)
        text_puts(out, "expires now");
    else
        figure_span(out, expires - now);
}

static void snapshot_list_put_row(Table *table, const json_t *snapshot) {
    uint64_t since = reply_count(snapshot, "sinceUsec"), until = reply_count(snapshot, "untilUsec");
    bool partial = json_array_size(reply_member(snapshot, "partial")) > 0;
    _cleanup_(buffer_done) Buffer figure = {};

    table_shown(table, reply_string(snapshot, "name"));
    table_shown(table, reply_string(snapshot, "session"));
    if (since)
        figure_moment_short(&figure, since);
    else
        text_putc(&figure, '-');
    table_buffer(table, &figure);
    if (since && until >= since)
        figure_span_tenths(&figure, until - since);
    else
        text_putc(&figure, '-');
    if (partial)
        text_putc(&figure, '~');
    table_buffer(table, &figure);
    if (partial)
        table_color(table, COLOR_WARNING);
    figure_count(&figure, reply_count(snapshot, "samples"));
    table_buffer(table, &figure);
    figure_count(&figure, reply_count(snapshot, "lost"));
    table_buffer(table, &figure);
    if (reply_count(snapshot, "lost") > 0)
        table_color(table, COLOR_WARNING);
    figure_size(&figure, reply_count(snapshot, "bytes"));
    table_buffer(table, &figure);
    snapshot_list_put_kept(&figure, snapshot);
    table_buffer(table, &figure);
    table_shown(table, reply_string(snapshot, "reason"));
}

static int snapshot_list_print_table(Context *c, const json_t *snapshots) {
    static const Column columns[] = {
        {.name = "NAME"},
        {.name = "SESSION", .drops = 4},
        {.name = "SINCE"},
        {.name = "SPAN", .right = true, .drops = 3},
        {.name = "SAMPLES", .right = true, .drops = 5},
        {.name = "LOST", .right = true},
        {.name = "SIZE", .right = true, .drops = 2},
        {.name = "KEPT", .right = true, .drops = 1},
        {.name = "REASON", .shrinks = true},
        {},
    };
    _cleanup_(table_freep) Table *table = NULL;
    const json_t *snapshot;
    size_t i;
    int r = table_new(c, columns, &table);

    if (r == 0) {
        json_array_foreach(snapshots, i, snapshot) snapshot_list_put_row(table, snapshot);
        r = table_print(table, &c->out.buffer);
    }
    return r < 0 ? complain(STATUS_FAILED, "Failed to print the snapshots: %s.", strerror(-r))
                 : STATUS_OK;
}

static int snapshot_list_run_snapshots(Context *c, void *settings, char **arguments) {
    json_t *snapshots = NULL;
    int status = remote_ask_list(c, "ListSnapshots", json_object(), "snapshot", &snapshots);

    if (status != STATUS_OK)
        return status;
    context_page(c);
    if (!c->json && json_array_size(snapshots) > 0)
        status = snapshot_list_print_table(c, snapshots);
    else if (!c->json)
        remark(c, "There are no snapshots; 'profctl snapshot --last=60s' takes one.");
    return reply_print_done(c, status, snapshots);
}

static void snapshot_list_put_owner(Buffer *out, uint64_t uid) {
    const struct passwd *who = uid <= UINT32_MAX ? getpwuid((uid_t)uid) : NULL;

    if (who)
        text_escape_str(out, who->pw_name);
    else
        text_printf(out, "user %ju", (uintmax_t)uid);
}

static void snapshot_list_print_partial(const Screen *screen, const json_t *snapshot) {
    const json_t *partial = reply_member(snapshot, "partial"), *reason;
    size_t i;

    json_array_foreach(partial, i, reason)
        screen_line(screen, i == 0 ? "Not complete" : NULL, COLOR_WARNING,
                    json_string_value(reason) ? json_string_value(reason) : "?");
    if (json_array_size(partial) == 0)
        screen_line(screen, "Complete", COLOR_NONE, "yes");
}

static void snapshot_list_print_coverage(const Screen *screen, const json_t *snapshot,
                                         Buffer *text) {
    PdCoverage coverage;

    if (coverage_of_reply(snapshot, &coverage)) {
        coverage_times(text, coverage.from_ns / NS_PER_US, coverage.to_ns / NS_PER_US);
        text_puts(text, ", ");
        coverage_describe(text, &coverage);
    } else {
        text_puts(text, "not known");
    }
    screen_buffer(screen, "Window", text);
    pd_coverage_done(&coverage);
}

static void snapshot_list_print_screen(Context *c, const json_t *snapshot) {
    uint64_t since = reply_count(snapshot, "sinceUsec"), until = reply_count(snapshot, "untilUsec");
    bool partial = json_array_size(reply_member(snapshot, "partial")) > 0;
    Screen screen = screen_of(c);
    _cleanup_(buffer_done) Buffer text = {};

    screen_title(&screen, partial ? COLOR_WARNING : COLOR_GOOD, reply_string(snapshot, "name"),
                 reply_string(snapshot, "reason"));
    screen_line(&screen, "Path", COLOR_NONE, reply_string(snapshot, "path"));
    screen_printf(&screen, "Session", "%s%s", reply_string(snapshot, "session"),
                  reply_bool(snapshot, "sensitive") ? ", with memory of other users" : "");
    if (since && until >= since) {
        figure_moment(&text, since);
        screen_buffer(&screen, "Since", &text);
        figure_moment(&text, until);
        screen_buffer(&screen, "Until", &text);
        figure_span_tenths(&text, until - since);
        screen_buffer(&screen, "Span", &text);
    }
    figure_count(&text, reply_count(snapshot, "samples"));
    text_puts(&text, reply_count(snapshot, "lost") > 0 ? ", " : ", none");
    if (reply_count(snapshot, "lost") > 0)
        figure_count(&text, reply_count(snapshot, "lost"));
    text_puts(&text, " lost");
    screen_buffer(&screen, "Samples", &text);
    if (snapshot_unidentified(snapshot) > 0)
        screen_printf(&screen, "Unnamed", "%" PRIu64 " %s no build id",
                      snapshot_unidentified(snapshot),
                      snapshot_unidentified(snapshot) == 1 ? "file has" : "files have");
    snapshot_list_print_coverage(&screen, snapshot, &text);
    snapshot_list_print_partial(&screen, snapshot);
    figure_size(&text, reply_count(snapshot, "bytes"));
    text_printf(&text, ", layout %s", reply_string(snapshot, "layout"));
    screen_buffer(&screen, "Size", &text);
    snapshot_list_put_owner(&text, reply_count(snapshot, "uid"));
    text_puts(&text, ", ");
    figure_since(&text, reply_count(snapshot, "createdUsec"), figure_now_us());
    screen_buffer(&screen, "Taken by", &text);
    snapshot_list_put_kept(&text, snapshot);
    screen_buffer(&screen, "Kept", &text);
    if (!c->no_legend && snapshot_hint(&text, reply_string(snapshot, "path")))
        screen_buffer(&screen, "Next", &text);
}

typedef struct ShowSettings {
    const char *output;
    bool force;
} ShowSettings;

static bool snapshot_list_show_streams(const void *settings, char **arguments) {
    const ShowSettings *s = settings;

    return s->output && strcmp(s->output, "-") == 0;
}

static int snapshot_list_show(Context *c, const ShowSettings *s, const json_t *snapshot) {
    if (s->output && strcmp(s->output, "-") == 0)
        return snapshot_pass_on(c, snapshot, true);
    if (s->output) {
        int status = snapshot_save(c, snapshot, s->output, s->force);

        if (status != STATUS_OK)
            return status;
    }
    if (c->json != JSON_OFF)
        return reply_print(c, snapshot);
    snapshot_list_print_screen(c, snapshot);
    return STATUS_OK;
}

static int snapshot_list_run_show(Context *c, void *settings, char **arguments) {
    const ShowSettings *s = settings;
    _cleanup_json_ json_t *snapshots = NULL;
    int status;

    if (snapshot_list_show_streams(s, arguments) && isatty(STDOUT_FILENO))
        return complain(STATUS_FAILED,
                        "A recording cannot be written to a terminal; redirect stdout.");
    status =
        remote_ask_list(c, "ListSnapshots", json_pack("{so}", "name", remote_word(arguments[0])),
                        "snapshot", &snapshots);
    if (status != STATUS_OK)
        return status;
    if (json_array_size(snapshots) == 0)
        return complain(STATUS_NOT_FOUND,
                        "There is no snapshot '%s'; 'profctl snapshots' lists the snapshots.",
                        arguments[0]);
    return snapshot_list_show(c, s, json_array_get(snapshots, 0));
}

static int snapshot_list_remove(Context *c, Remote *remote, const char *name, void *userdata,
                                json_t **done) {
    _cleanup_json_ json_t *reply = NULL;
    uint64_t *bytes = userdata;
    int status =
        remote_call(remote, "RemoveSnapshot", json_pack("{so}", "name", remote_word(name)), &reply);

    if (status == STATUS_OK) {
        *bytes += reply_count(reply, "bytes");
        value_append(done, remote_word(name));
    }
    return status;
}

static int snapshot_list_run_rm(Context *c, void *settings, char **arguments) {
    _cleanup_(buffer_done) Buffer size = {};
    uint64_t bytes = 0;
    json_t *removed;
    int status = remote_for_each(c, arguments, snapshot_list_remove, &bytes, &removed);
    size_t n = json_array_size(removed);

    figure_size(&size, bytes);
    text_putc(&size, '\0');
    if (n > 0 && buffer_error(&size) == 0)
        remark(c, "Removed %zu snapshot%s, %s are free again.", n, n == 1 ? "" : "s",
               (const char *)size.data);
    return removed ? reply_print_done(
                         c, status,
                         json_pack("{so sI}", "removed", removed, "bytes", (json_int_t)bytes))
                   : status;
}

typedef struct PinSettings {
    bool off;
} PinSettings;

static int snapshot_list_pin(Context *c, Remote *remote, const char *name, void *userdata,
                             json_t **done) {
    const PinSettings *s = userdata;
    _cleanup_json_ json_t *parameters =
        json_pack("{so sb}", "name", remote_word(name), "pinned", (int)!s->off);
    int status = remote_call(remote, "PinSnapshot", json_incref(parameters), NULL);

    if (status == STATUS_OK)
        value_append(done, json_incref(parameters));
    return status;
}

static int snapshot_list_run_pin(Context *c, void *settings, char **arguments) {
    json_t *pinned;
    int status = remote_for_each(c, arguments, snapshot_list_pin, settings, &pinned);

    return reply_print_done(c, status, pinned);
}

/* clang-format off */
static const Option show_options[] = {
    {'o', "output", "FILE", "Also write the recording to FILE; - writes it to stdout and shows nothing", option_string, offsetof(ShowSettings, output)},
    {'f', "force",  NULL,   "Replace FILE if it exists",                                  option_flag,   offsetof(ShowSettings, force)},
    {},
};

static const Option pin_options[] = {
    {0, "off", NULL, "Let these snapshots expire again", option_flag, offsetof(PinSettings, off)},
    {},
};
/* clang-format on */

const Command command_snapshots = {
    .name = "snapshots",
    .arguments = "",
    .summary = "List the snapshots that profd keeps",
    .run = snapshot_list_run_snapshots,
};

const Command command_show_snapshot = {
    .name = "show-snapshot",
    .arguments = "SNAPSHOT",
    .n_min = 1,
    .n_max = 1,
    .summary = "Show a snapshot in full, or write it to a file",
    .options = show_options,
    .settings_size = sizeof(ShowSettings),
    .run = snapshot_list_run_show,
    .streams = snapshot_list_show_streams,
};

const Command command_rm = {
    .name = "rm",
    .arguments = "SNAPSHOT…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Remove snapshots: your own, or any as an administrator",
    .run = snapshot_list_run_rm,
};

const Command command_pin = {
    .name = "pin",
    .arguments = "SNAPSHOT…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Keep snapshots until they are removed",
    .options = pin_options,
    .settings_size = sizeof(PinSettings),
    .run = snapshot_list_run_pin,
};
