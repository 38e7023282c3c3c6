/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/frame/timestamp.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "client/remote/session-text.h"
#include "protocol/value.h"
#include "util/text.h"

/*
 * `profctl start`: translates options in perf's words to keys of a session. The daemon validates
 * the values, since it has the table of keys; its reply names what is wrong.
 */

typedef struct StartSettings {
    json_t *keys; /* of a [Session] section; NULL: no options given */
    OptionTimestamp duration;
    const char *unit; /* NULL: none */
} StartSettings;

/* clang-format off */
static const struct {
    const char *option, *key;
} keys[] = {
    { "call-chains", "CallGraph" },
    { "call-graph", "CallGraph" },
    { "cgroup",     "Cgroup"    },
    { "compress",   "Compress"  },
    { "count",      "Period"    },
    { "cpu",        "CPUs"      },
    { "event",      "Event"     },
    { "frequency",  "Frequency" },
    { "layout",     "Layout"    },
    { "pid",        "Pid"       },
    { "tid",        "Tid"       },
};
/* clang-format on */

static int start_set(json_t **settings, const char *key, const char *value) {
    if (!*settings)
        *settings = json_object();
    if (!*settings)
        return -ENOMEM;
    /* Keys accept only UTF-8. */
    return json_object_set_new(*settings, key, remote_word(value)) == 0 ? 0 : -EINVAL;
}

/* Lists may be given in several options. */
static int start_add(json_t **settings, const char *key, const char *value) {
    _cleanup_(buffer_done) Buffer list = {};
    const char *before = json_string_value(json_object_get(*settings, key));

    if (!before)
        return start_set(settings, key, value);
    text_printf(&list, "%s,%s", before, value);
    text_putc(&list, '\0');
    return buffer_error(&list) ? -ENOMEM : start_set(settings, key, (const char *)list.data);
}

static int start_option_key(const Option *option, const char *argument, void *field) {
    json_t **settings = field;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(keys[i].option, option->long_name) == 0)
            return start_set(settings, keys[i].key, argument);
    return -EINVAL;
}

static int start_option_key_list(const Option *option, const char *argument, void *field) {
    json_t **settings = field;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(keys[i].option, option->long_name) == 0)
            return start_add(settings, keys[i].key, argument);
    return -EINVAL;
}

/* perf separates the size of stacks with a comma. */
static int start_option_call_graph(const Option *option, const char *argument, void *field) {
    _cleanup_free_ char *value = strdup(argument ? argument : "auto");
    char *comma = value ? strchr(value, ',') : NULL;

    if (!value)
        return -ENOMEM;
    if (comma)
        *comma = ':';
    return start_option_key(option, value, field);
}

static int start_option_set(const Option *option, const char *argument, void *field) {
    const char *equals = strchr(argument, '=');
    _cleanup_free_ char *key = NULL;

    if (!equals || equals == argument)
        return -EINVAL;
    key = strndup(argument, (size_t)(equals - argument));
    return key ? start_set(field, key, equals + 1) : -ENOMEM;
}

static json_t *start_parameters_of(StartSettings *o, const char *session) {
    json_t *parameters = json_pack("{s:o}", "session", remote_word(session));

    if (o->keys)
        value_set(&parameters, "settings", json_incref(o->keys));
    if (o->duration.set)
        value_set(&parameters, "durationUsec", json_integer((json_int_t)o->duration.us));
    if (o->unit)
        value_set(&parameters, "unit", remote_word(o->unit));
    return parameters;
}

/* `start` has no result on stdout; messages go to stderr. */
static void start_report(const Context *c, const json_t *session) {
    _cleanup_(buffer_done) Buffer text = {};
    const json_t *reason;
    size_t i;

    text_printf(&text, "Session '%s' records %s", reply_string(session, "name"),
                reply_string(session, "describe"));
    if (reply_has(session, "stopsUsec")) {
        text_puts(&text, ", until ");
        figure_moment(&text, reply_count(session, "stopsUsec"));
    }
    text_putc(&text, '.');
    json_array_foreach(reply_member(session, "degraded"), i, reason) {
        text_puts(&text, " Degraded: ");
        session_put_reason(&text, reason);
    }
    if (!c->quiet)
        remark_buffer(&text);
}

static int start_run(Context *c, void *settings, char **arguments) {
    _cleanup_json_ json_t *reply = NULL;
    int r = remote_ask(c, "Start", start_parameters_of(settings, arguments[0]), &reply);

    if (r == STATUS_OK && c->json)
        r = reply_print(c, json_object_get(reply, "session"));
    else if (r == STATUS_OK)
        start_report(c, json_object_get(reply, "session"));
    return r;
}

static void start_done(void *settings) {
    json_decref(((StartSettings *)settings)->keys);
}

#define KEYS offsetof(StartSettings, keys)

/* clang-format off */
static const Option start_options[] = {
    {'e', "event",      "EVENT",                "Sample this event, in perf's syntax; separate several by commas, or repeat -e", start_option_key_list, KEYS},
    {'F', "frequency",  "HZ",                   "Samples a second on each CPU; max is the highest rate that the kernel allows",      start_option_key,        KEYS},
    {'c', "count",      "N",                    "Take a sample every N events, instead of a frequency",                     start_option_key,        KEYS},
    {'p', "pid",        "PID",                  "Only these processes and those that they start; separate several by commas",      start_option_key_list,   KEYS},
    {'t', "tid",        "TID",                  "Only these threads, without those that they start; separate several by commas",     start_option_key_list,   KEYS},
    {'C', "cpu",        "CPU",                  "Only these CPUs, such as 0-3,8",                                     start_option_key_list,   KEYS},
    {0,   "cgroup",     "GROUP",                "Only this control group, as system.slice/nginx.service",             start_option_key,        KEYS},
    {'u', "unit",       "UNIT",                 "Only the control group of this systemd unit, as shop or 'web@1*'",      option_string,     offsetof(StartSettings, unit)},
    {0,   "call-graph", "auto|fp|unwind[:SIZE]|dwarf[:SIZE]|lbr|none", "How to take call chains",                                      start_option_call_graph, KEYS},
    {'g', "call-chains", "[MODE]",              "The same as --call-graph; without MODE auto",                                  start_option_call_graph, KEYS},
    {0,   "duration",   "SPAN",                 "Stop after this time, such as 30s or 5min",                option_span,       offsetof(StartSettings, duration)},
    {0,   "layout",     "file|directory",       "Layout of its segments",                                             start_option_key,        KEYS},
    {0,   "compress",   "none|zstd[:LEVEL]",    "Compression of its segments",                                        start_option_key,        KEYS},
    {0,   "set",        "KEY=VALUE",            "Any other key of a [Session] in profd.conf(5)",                      start_option_set,        KEYS},
    {},
};
/* clang-format on */

const Command command_start = {
    .name = "start",
    .arguments = "SESSION",
    .n_min = 1,
    .n_max = 1,
    .summary = "Start a session, a new one or one that was stopped",
    .notes = "Without options a configured session starts again with its configuration. With "
             "an\nevent a new session starts beside all others; profd.conf(5) has the defaults of "
             "its\nsettings. A new session survives a crash of the recorder, not a stop of profd.",
    .options = start_options,
    .settings_size = sizeof(StartSettings),
    .run = start_run,
    .done = start_done,
};
