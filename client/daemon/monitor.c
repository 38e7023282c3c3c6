/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/frame/color.h"
#include "client/frame/figure.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "util/near.h"
#include "util/text.h"

/*
 * `profctl monitor`: prints one line for each event of a session, at once. Messages of the daemon
 * about the stream itself (ready, dropped) are no session events: they are for programs, which must
 * know from when on they miss nothing; people get a remark when events were dropped.
 */

/* The events that profd reports about sessions and itself; the stream adds some of its own. */
static const char *const monitor_events[] = {
    "started", "stopped",  "paused",    "resumed",  "rotated", "snapshot", "removed",
    "lost",    "degraded", "recovered", "reloaded", "cpus",    "failed",   NULL,
};

static const char monitor_letters[] = "abcdefghijklmnopqrstuvwxyz";

typedef struct MonitorSettings {
    OptionWords events;
    uint64_t count;
} MonitorSettings;

typedef struct Monitor {
    Context *context;
    const MonitorSettings *settings;
    char **sessions;
    uint64_t n;
    bool done;
} Monitor;

static Color monitor_event_color(const char *event) {
    static const char *const bad[] = {"failed"}, *const warning[] = {"lost", "degraded", "cpus"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (strcmp(bad[i], event) == 0)
            return COLOR_BAD;
    for (size_t i = 0; i < ARRAY_SIZE(warning); i++)
        if (strcmp(warning[i], event) == 0)
            return COLOR_WARNING;
    return strcmp(event, "recovered") == 0 ? COLOR_GOOD : COLOR_STRONG;
}

static bool monitor_is_wanted(const Monitor *m, const json_t *event) {
    const MonitorSettings *o = m->settings;
    bool wanted = o->events.n == 0;

    for (size_t i = 0; i < o->events.n; i++)
        wanted |= strcmp(o->events.items[i], reply_string(event, "event")) == 0;
    if (!wanted || !*m->sessions)
        return wanted;
    for (char **session = m->sessions; *session; session++)
        if (strcmp(*session, reply_string(event, "session")) == 0)
            return true;
    return false;
}

static void monitor_print_line(Context *c, const json_t *event) {
    const char *name = reply_string(event, "event"), *session = reply_string(event, "session");
    bool colors = context_colors(c);
    Buffer *out = &c->out.buffer;

    figure_moment_short(out, reply_count(event, "timeUsec"));
    text_printf(out, " %s %s%s%s: %s", *session ? session : "profd",
                colors ? color_sequence(monitor_event_color(name)) : "", name,
                colors ? color_sequence(COLOR_NONE) : "", reply_string(event, "text"));
    text_putc(out, '\n');
}

static bool monitor_is_of_stream(const char *event) {
    return strcmp(event, "ready") == 0 || strcmp(event, "dropped") == 0;
}

static int monitor_on_event(void *userdata, const json_t *event) {
    const char *name = reply_string(event, "event");
    Monitor *m = userdata;
    Context *c = m->context;
    int r = STATUS_OK;

    if (monitor_is_of_stream(name) && !c->json) {
        if (strcmp(name, "dropped") == 0)
            remark(c, "%" PRIu64 " %s dropped because profctl did not read them fast enough.",
                   reply_count(event, "count"),
                   reply_count(event, "count") == 1 ? "event was" : "events were");
        return STATUS_OK;
    }
    if (!monitor_is_of_stream(name) && !monitor_is_wanted(m, event))
        return STATUS_OK;
    if (c->json)
        r = reply_print(c, event);
    else
        monitor_print_line(c, event);
    m->n += !monitor_is_of_stream(name);
    m->done = m->settings->count > 0 && m->n >= m->settings->count;
    if (output_flush(&c->out) < 0)
        return STATUS_FAILED;
    /* Any status but STATUS_OK ends the stream. */
    return m->done ? STATUS_FAILED : r;
}

static bool monitor_knows(const char *event) {
    for (size_t i = 0; monitor_events[i]; i++)
        if (strcmp(monitor_events[i], event) == 0)
            return true;
    return false;
}

/* Unknown events are allowed, since a newer profd may have more of them. Names that can never exist
 * are refused, because waiting for them would not end. */
static int monitor_check_event(const Context *c, const char *event) {
    bool possible = !event[strspn(event, monitor_letters)];
    NearNames near = {};

    if (monitor_knows(event))
        return STATUS_OK;
    for (size_t i = 0; monitor_events[i]; i++)
        near_offer(&near, monitor_events[i], near_distance(monitor_events[i], event));
    if (!possible && near.n > 0)
        return complain(STATUS_USAGE, "There is no event '%s'. Did you mean '%s'?", event,
                        near.names[0].name);
    if (!possible)
        return complain(STATUS_USAGE, "There is no event '%s', see 'profctl help monitor'.", event);
    if (near.n > 0)
        remark(c, "Waiting for events '%s', which this profctl does not know. Did you mean '%s'?",
               event, near.names[0].name);
    else
        remark(c,
               "Waiting for events '%s', which this profctl does not know; 'profctl help monitor' "
               "lists those that it knows.",
               event);
    return STATUS_OK;
}

/* An unknown session is allowed, since it may be started later. */
static int monitor_check_names(const Monitor *m) {
    static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    int r = STATUS_OK;

    for (char **session = m->sessions; *session; session++)
        for (const char *at = *session; *at || at == *session; at++)
            if (!*at || (!strchr(monitor_letters, *at) && !strchr(others, *at)))
                return complain(STATUS_NOT_FOUND, "There is no session '%s'.", *session);
    for (size_t i = 0; i < m->settings->events.n && r == STATUS_OK; i++)
        r = monitor_check_event(m->context, m->settings->events.items[i]);
    return r;
}

static int monitor_run(Context *c, void *settings, char **arguments) {
    Monitor m = {.context = c, .settings = settings, .sessions = arguments};
    _cleanup_(remote_freep) Remote *remote = NULL;
    int r = monitor_check_names(&m);

    if (r == STATUS_OK)
        r = remote_open(c, &remote);
    if (r != STATUS_OK)
        return r;
    remote_set_timeout(remote, REMOTE_FOREVER);
    r = remote_each(remote, "Monitor", json_object(), monitor_on_event, &m);
    return m.done ? STATUS_OK : r;
}

static void monitor_done(void *settings) {
    option_words_done(&((MonitorSettings *)settings)->events);
}

/* clang-format off */
static const Option monitor_options[] = {
    {'e', "event", "EVENT", "Only these events, separated by commas: rotated, lost, degraded, …", option_words, offsetof(MonitorSettings, events)},
    {'n', "count", "N",     "End after N lines",                                  option_count, offsetof(MonitorSettings, count)},
    {},
};
/* clang-format on */

const Command command_monitor = {
    .name = "monitor",
    .arguments = "[SESSION…]",
    .n_max = UINT32_MAX,
    .summary = "Print events of sessions as they happen",
    .notes = "Ends with the daemon, or by Ctrl-C. Events are started, stopped, paused, resumed,\n"
             "rotated, snapshot, removed, lost, degraded, recovered, reloaded, cpus, failed. "
             "With\n--json each line is an object; the first one, ready, means that no later event "
             "is\nmissed.",
    .options = monitor_options,
    .words = {"event", monitor_events},
    .settings_size = sizeof(MonitorSettings),
    .run = monitor_run,
    .live = true,
    .done = monitor_done,
};
