/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/shell.h"
#include "client/snapshot/snapshot-save.h"

#include <errno.h>
#include <string.h>

#include "client/file/sink.h"
#include "client/frame/figure.h"
#include "client/frame/timestamp.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/snapshot/snapshot-page.h"
#include "protocol/value.h"
#include "util/parse.h"
#include "util/text.h"

/*
 * `profctl snapshot`: requests a window of the past and prints where the snapshot is. A snapshot
 * that the daemon keeps has a name and a path, and the path alone goes to stdout. With -o the
 * daemon keeps it only while our connection is open; its bytes are sent to us and become a file of
 * this user. If we are interrupted, the connection closes and the daemon deletes the snapshot.
 */

/* The same limits as in profd. */
enum { IDS_MAX = 256, PID_MAX = 1 << 22, NAME_LENGTH_MAX = 64, REASON_LENGTH_MAX = 255 };

typedef struct SnapshotSettings {
    const char *session, *name, *reason, *compress, *cpus, *output, *html;
    unsigned layout; /* index of the word, from 1; 0: not given */
    OptionTimestamp last, since, until, at, follow_up;
    bool pin, force;
    OptionNumbers pids, tids;
    OptionWords comms, cgroups, units;
} SnapshotSettings;

static int snapshot_option_compress_word(const Option *option, const char *argument, void *field) {
    int level, r = option_compress(option, argument, &level);

    return r < 0 ? r : option_string(option, argument, field);
}

static int snapshot_option_cpus(const Option *option, const char *argument, void *field) {
    OptionNumbers cpus = {};
    int r = option_numbers(option, argument, &cpus);

    option_numbers_done(&cpus);
    return r < 0 ? r : option_string(option, argument, field);
}

/* clang-format off */
static const Option snapshot_options[] = {
    {0,   "last",      "SPAN",              "The last SPAN, such as 60s or '1h 30min'",                  option_span,          offsetof(SnapshotSettings, last)},
    {'S', "since",     "TIME",              "Begin of the window: '2026-11-21 10:00', -5min, today; see profctl(1)",  option_timestamp,     offsetof(SnapshotSettings, since)},
    {'U', "until",     "TIME",              "End of the window",                                                      option_timestamp,     offsetof(SnapshotSettings, until)},
    {0,   "at",        "TIME",              "Use TIME as the present, for the same window on many hosts",       option_timestamp,     offsetof(SnapshotSettings, at)},
    {0,   "follow-up", "SPAN",              "Add the next SPAN to the window, and return when it is over",        option_span,          offsetof(SnapshotSettings, follow_up)},
    {'s', "session",   "SESSION",           "Session to read, by default 'default'",                option_string,        offsetof(SnapshotSettings, session)},
    {'n', "name",      "NAME",              "Name of the snapshot, by default its time",              option_string,        offsetof(SnapshotSettings, name)},
    {'r', "reason",    "TEXT",              "Note this reason in the snapshot",                                           option_string,        offsetof(SnapshotSettings, reason)},
    {0,   "pin",       NULL,                "Keep it until it is removed",                                     option_flag,          offsetof(SnapshotSettings, pin)},
    {0,   "layout",    LAYOUT_WORDS,        "Layout to write; -o - takes and defaults to pipe", option_choice, offsetof(SnapshotSettings, layout)},
    {0,   "compress",  "zstd[:LEVEL]|none", "Compress records by zstd, level 1 to 22, or do not",                 snapshot_option_compress_word, offsetof(SnapshotSettings, compress)},
    {'p', "pid",       "PID,…",             "Only samples of these processes",                                 option_numbers,       offsetof(SnapshotSettings, pids)},
    {'t', "tid",       "TID,…",             "Only samples of these threads",                                   option_numbers,       offsetof(SnapshotSettings, tids)},
    {0,   "comm",      "NAME,…",            "Only samples of threads with these names",                        option_words,         offsetof(SnapshotSettings, comms)},
    {'G', "cgroup",    "PATH,…",            "Only samples of these control groups and those below them",       option_words,         offsetof(SnapshotSettings, cgroups)},
    {'u', "unit",      "UNIT,…",            "Only samples of these systemd units, as shop or 'web@*'",         option_words,         offsetof(SnapshotSettings, units)},
    {'C', "cpu",       "CPU,…",             "Only samples of these CPUs, such as 0-3,8",                       snapshot_option_cpus,          offsetof(SnapshotSettings, cpus)},
    {'o', "output",    "FILE",              "Write it to FILE, which you own, or for - to stdout; profd keeps no copy", option_string,  offsetof(SnapshotSettings, output)},
    {0,   "html",      "FILE",              "Write the window as an incident page to FILE, or for - to stdout", option_string, offsetof(SnapshotSettings, html)},
    {'f', "force",     NULL,                "Replace FILE if it exists",                                    option_flag,          offsetof(SnapshotSettings, force)},
    {},
};
/* clang-format on */

enum { WORD_FILE = 1, WORD_DIRECTORY, WORD_PIPE };

static bool snapshot_to_stdout(const SnapshotSettings *s) {
    return s->output && strcmp(s->output, "-") == 0;
}

static bool snapshot_streams(const void *settings, char **arguments) {
    return snapshot_to_stdout(settings);
}

/* A window that begins at or after its end can contain nothing. */
static int snapshot_check_start(const SnapshotSettings *s) {
    uint64_t now = figure_now_us(), end = s->until.set ? s->until.us : s->at.set ? s->at.us : now;

    if (s->follow_up.set && __builtin_add_overflow(end, s->follow_up.us, &end))
        end = UINT64_MAX;
    if (!s->since.set || s->since.us < end)
        return STATUS_OK;
    if (s->until.set)
        return complain(STATUS_USAGE, "--since is not before --until, the window is empty.");
    if (s->at.set)
        return complain(STATUS_USAGE, "--since is not before --at, the window is empty.");
    return complain(STATUS_USAGE, "--since lies in the future; --follow-up=SPAN waits for it.");
}

/* Refuses what profd would refuse, with better messages. */
static int snapshot_check_values(const SnapshotSettings *s) {
    if (s->name && !parse_is_name(s->name, NAME_LENGTH_MAX))
        return complain(STATUS_USAGE,
                        "Invalid --name '%s': a name has letters, digits, '.', '_' and '-', at "
                        "most %d, and begins with a letter or digit.",
                        s->name, NAME_LENGTH_MAX);
    if (s->reason && strlen(s->reason) > REASON_LENGTH_MAX)
        return complain(STATUS_USAGE, "Invalid --reason: it has more than %d bytes.",
                        REASON_LENGTH_MAX);
    for (size_t i = 0; i < s->pids.n; i++)
        if (s->pids.items[i].last > PID_MAX)
            return complain(STATUS_USAGE, "Invalid --pid %u: a process id is at most %d.",
                            s->pids.items[i].last, PID_MAX);
    for (size_t i = 0; i < s->tids.n; i++)
        if (s->tids.items[i].last > PID_MAX)
            return complain(STATUS_USAGE, "Invalid --tid %u: a thread id is at most %d.",
                            s->tids.items[i].last, PID_MAX);
    return snapshot_check_start(s);
}

/* Refuses contradictory options. */
static int snapshot_check(const SnapshotSettings *s) {
    if (s->last.set && (s->since.set || s->until.set))
        return complain(STATUS_USAGE, "--last is counted from the end; leave out --since and "
                                      "--until, or give these alone.");
    if (s->output && (s->name || s->pin))
        return complain(STATUS_USAGE, "--%s is for snapshots that profd keeps; leave out --output.",
                        s->name ? "name" : "pin");
    if (s->html && (s->output || s->name || s->reason || s->pin || s->layout || s->compress ||
                    s->at.set || s->follow_up.set))
        return complain(STATUS_USAGE, "--html takes a window and filters; profd keeps no snapshot "
                                      "for a page.");
    if (s->force && !s->output && !s->html)
        return complain(STATUS_USAGE, "--force is for --output=FILE and --html=FILE; what profd "
                                      "keeps is never replaced.");
    if (s->layout == WORD_PIPE && !snapshot_to_stdout(s))
        return complain(STATUS_USAGE, "The layout 'pipe' is for --output=-.");
    if (s->layout == WORD_DIRECTORY && snapshot_to_stdout(s))
        return complain(STATUS_USAGE, "A directory cannot be written to stdout; name a folder.");
    return snapshot_check_values(s);
}

static void snapshot_set_time(json_t **parameters, const char *name, OptionTimestamp time) {
    if (time.set)
        value_set(parameters, name, json_integer((json_int_t)time.us));
}

static void snapshot_set_string(json_t **parameters, const char *name, const char *s) {
    if (s)
        value_set(parameters, name, remote_word(s));
}

static void snapshot_set_words(json_t **parameters, const char *name, const OptionWords *words) {
    json_t *list = json_array();

    for (size_t i = 0; i < words->n; i++)
        value_append(&list, remote_word(words->items[i]));
    if (words->n > 0)
        value_set(parameters, name, list);
    else
        json_decref(list);
}

/* `what`: their name in the message about too many of them. */
static int snapshot_set_ids(json_t **parameters, const char *name, const OptionNumbers *ids,
                            const char *what) {
    json_t *list = json_array();
    size_t n = 0;

    for (size_t i = 0; i < ids->n; i++)
        for (uint64_t v = ids->items[i].first; v <= ids->items[i].last; v++)
            if (n++ < IDS_MAX)
                value_append(&list, json_integer((json_int_t)v));
            else {
                json_decref(list);
                return complain(STATUS_USAGE, "More than %d %s are given.", IDS_MAX, what);
            }
    if (ids->n > 0)
        value_set(parameters, name, list);
    else
        json_decref(list);
    return STATUS_OK;
}

static const char *snapshot_layout_word(const SnapshotSettings *s) {
    if (s->layout == WORD_DIRECTORY)
        return "directory";
    /* A snapshot with -o always has the same layout, whatever the session's layout is. */
    return s->layout || s->output ? "file" : NULL;
}

/* Whether it is converted to a stream for output. */
static bool snapshot_becomes_stream(const SnapshotSettings *s) {
    return snapshot_to_stdout(s) && s->layout != WORD_FILE;
}

static int snapshot_make_parameters(const SnapshotSettings *s, json_t **ret) {
    json_t *parameters = json_object();
    int status;

    snapshot_set_string(&parameters, "session", s->session);
    snapshot_set_time(&parameters, "lastUsec", s->last);
    snapshot_set_time(&parameters, "sinceUsec", s->since);
    snapshot_set_time(&parameters, "untilUsec", s->until);
    snapshot_set_time(&parameters, "atUsec", s->at);
    snapshot_set_time(&parameters, "followUpUsec", s->follow_up);
    snapshot_set_string(&parameters, "name", s->name);
    snapshot_set_string(&parameters, "reason", s->reason);
    snapshot_set_string(&parameters, "layout", snapshot_layout_word(s));
    /* A stream is made from uncompressed data. */
    snapshot_set_string(&parameters, "compress", snapshot_becomes_stream(s) ? "none" : s->compress);
    snapshot_set_words(&parameters, "comms", &s->comms);
    snapshot_set_words(&parameters, "cgroups", &s->cgroups);
    snapshot_set_words(&parameters, "units", &s->units);
    snapshot_set_string(&parameters, "cpus", s->cpus);
    if (s->pin)
        value_set(&parameters, "pin", json_true());
    if (s->output)
        value_set(&parameters, "transient", json_true());
    status = snapshot_set_ids(&parameters, "pids", &s->pids, "processes");
    if (status == STATUS_OK)
        status = snapshot_set_ids(&parameters, "tids", &s->tids, "threads");
    if (status != STATUS_OK)
        json_decref(parameters);
    else
        *ret = parameters;
    return status;
}

typedef struct Taking {
    Progress progress;
    json_t *snapshot;
} Taking;

static int snapshot_on_reply(void *userdata, const json_t *reply) {
    Taking *t = userdata;
    json_t *snapshot = json_object_get(reply, "snapshot");

    if (!snapshot || json_is_null(snapshot)) {
        progress_show(&t->progress, reply_string(reply, "phase"), reply_count(reply, "doneBytes"),
                      reply_count(reply, "totalBytes"));
        return STATUS_OK;
    }
    json_decref(t->snapshot);
    t->snapshot = json_incref(snapshot);
    return STATUS_OK;
}

/* Prints a command to continue with, ready to run. */
static void snapshot_print_hint(const Context *c, const json_t *snapshot, const char *path) {
    _cleanup_(buffer_done) Buffer said = {}, hint = {};

    if (snapshot_hint(&hint, path)) {
        text_puts(&said, "Next: ");
        buffer_append(&said, hint.data, hint.size);
    } else {
        text_puts(&said, "You cannot read this file. Write one of your own: profctl ");
        if (c->socket) {
            text_puts(&said, "--socket=");
            shell_put_word(&said, c->socket, strlen(c->socket));
            text_putc(&said, ' ');
        }
        text_printf(&said, "show-snapshot %s -o %s.perf.data", reply_string(snapshot, "name"),
                    reply_string(snapshot, "name"));
    }
    if (!buffer_error(&hint))
        remark_buffer(&said);
}

/* Prints the path on stdout, the rest on stderr; STATUS_PARTIAL if something is missing. */
static int snapshot_print_result(Context *c, json_t *snapshot, const char *path) {
    _cleanup_(buffer_done) Buffer said = {};
    bool partial = json_array_size(json_object_get(snapshot, "partial")) > 0;
    int status = STATUS_OK;

    if (c->json != JSON_OFF && path)
        status = reply_print(c, snapshot);
    else if (path)
        text_printf(&c->out.buffer, "%s\n", path);
    (void)output_flush(&c->out); /* flush it so that it comes first on a terminal */
    snapshot_describe(&said, snapshot);
    if (partial || !c->quiet)
        remark_buffer(&said);
    if (path && reply_count(snapshot, "samples") > 0 && !c->quiet && !c->no_legend && !c->remote)
        snapshot_print_hint(c, snapshot, path);
    return status == STATUS_OK && partial ? STATUS_PARTIAL : status;
}

/* Fetches the snapshot from the daemon and writes it to the requested place. */
static int snapshot_deliver(Context *c, const SnapshotSettings *s, json_t *snapshot) {
    int status;

    if (snapshot_to_stdout(s)) {
        status = snapshot_pass_on(c, snapshot, snapshot_becomes_stream(s));
        return status == STATUS_OK ? snapshot_print_result(c, snapshot, NULL) : status;
    }
    status = snapshot_save(c, snapshot, s->output, s->force);
    if (status != STATUS_OK)
        return status;
    if (json_object_set_new(snapshot, "path", remote_word(s->output)) < 0)
        return complain(STATUS_FAILED, "Failed to print the snapshot: %s.", strerror(ENOMEM));
    return snapshot_print_result(c, snapshot, s->output);
}

/* With --html: the same window and filters, as a view. */
static int snapshot_page(Context *c, const SnapshotSettings *s) {
    ViewSettings view = {
        .last = s->last,
        .since = s->since,
        .until = s->until,
        .session = s->session,
        .selected = {.pids = s->pids,
                     .tids = s->tids,
                     .comms = s->comms,
                     .cgroups = s->cgroups,
                     .units = s->units},
    };
    int status;

    if (s->cpus && option_numbers(NULL, s->cpus, &view.selected.cpus) < 0) {
        option_numbers_done(&view.selected.cpus);
        return complain(STATUS_FAILED, "Failed to read --cpu: %s.", strerror(ENOMEM));
    }
    status = snapshot_write_page(c, &view, s->html, s->force);
    option_numbers_done(&view.selected.cpus);
    return status;
}

static int snapshot_run(Context *c, void *settings, char **arguments) {
    const SnapshotSettings *s = settings;
    _cleanup_(remote_freep) Remote *remote = NULL;
    Taking taking = {.progress = progress_of(c)};
    json_t *parameters = NULL;
    int status = snapshot_check(s);

    if (status == STATUS_OK && s->html)
        return snapshot_page(c, s);
    if (status == STATUS_OK && snapshot_to_stdout(s) && isatty(STDOUT_FILENO))
        status = complain(STATUS_FAILED,
                          "A recording cannot be written to a terminal; redirect stdout.");
    if (status == STATUS_OK)
        status = snapshot_make_parameters(s, &parameters);
    if (status == STATUS_OK)
        status = remote_open(c, &remote);
    if (status != STATUS_OK) {
        json_decref(parameters);
        return status;
    }
    remote_set_timeout(remote, REMOTE_FOREVER);
    status = remote_each(remote, "Snapshot", parameters, snapshot_on_reply, &taking);
    progress_end(&taking.progress);
    if (status == STATUS_OK && !taking.snapshot)
        status = complain(STATUS_FAILED, "profd closed the connection before it answered.");
    if (status == STATUS_OK)
        status = s->output ? snapshot_deliver(c, s, taking.snapshot)
                           : snapshot_print_result(c, taking.snapshot,
                                                   reply_string(taking.snapshot, "path"));
    json_decref(taking.snapshot);
    return status;
}

static void snapshot_settings_done(void *settings) {
    SnapshotSettings *s = settings;

    option_numbers_done(&s->pids);
    option_numbers_done(&s->tids);
    option_words_done(&s->comms);
    option_words_done(&s->cgroups);
    option_words_done(&s->units);
}

const Command command_snapshot = {
    .name = "snapshot",
    .arguments = "",
    .summary = "Save a window of the past as a recording of its own",
    .notes =
        "Without --last, --since and --until the window is all that the session has. Recording "
        "goes on undisturbed. stdout gets the path, or with --output=- the recording itself, "
        "as a stream that 'perf report -i -' reads; a summary is printed on stderr. With --html "
        "it writes an incident page instead, by default of the last five minutes: what changed, "
        "facts, a heat map, stacks and tables in one file for a browser.\n\n"
        "Exit status: 8 when a part of the window was not recorded or was deleted, 5 when no "
        "sample matches the filters. Ctrl-C ends the command, and profd keeps nothing.",
    .options = snapshot_options,
    .settings_size = sizeof(SnapshotSettings),
    .run = snapshot_run,
    .done = snapshot_settings_done,
    .streams = snapshot_streams,
};
