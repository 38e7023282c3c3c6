/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "client/frame/figure.h"
#include "client/frame/timestamp.h"
#include "client/remote/remote.h"
#include "client/remote/reply.h"
#include "protocol/value.h"
#include "util/parse.h"
#include "util/text.h"

/* `profctl vacuum`: deletes old segments until the limits hold, with options like those of
 * journalctl. */

typedef struct OptionCount {
    bool set;
    uint64_t n;
} OptionCount;

typedef struct VacuumSettings {
    OptionCount bytes, segments;
    OptionTimestamp age;
} VacuumSettings;

static int vacuum_option_bytes(const Option *option, const char *argument, void *field) {
    OptionCount *count = field;
    uint64_t n;
    int r = parse_size(argument, &n);

    if (r == 0)
        *count = (OptionCount){.set = true, .n = n};
    return r;
}

static int vacuum_option_count(const Option *option, const char *argument, void *field) {
    OptionCount *count = field;
    uint64_t n;
    int r = option_count(option, argument, &n);

    if (r == 0)
        *count = (OptionCount){.set = true, .n = n};
    return r;
}

static json_t *vacuum_parameters_of(const VacuumSettings *o) {
    json_t *parameters = json_object();

    if (o->bytes.set)
        value_set(&parameters, "maxBytes", json_integer((json_int_t)o->bytes.n));
    if (o->age.set)
        value_set(&parameters, "maxAgeUsec", json_integer((json_int_t)o->age.us));
    if (o->segments.set)
        value_set(&parameters, "maxSegments", json_integer((json_int_t)o->segments.n));
    return parameters;
}

static void vacuum_report(Context *c, const json_t *reply) {
    uint64_t removed = reply_count(reply, "removed");
    Buffer *out = &c->out.buffer;

    if (removed == 0) {
        text_puts(out, "No segment removed, the limits hold already.\n");
        return;
    }
    text_printf(out, "%" PRIu64 " segment%s removed, ", removed, removed == 1 ? "" : "s");
    figure_size(out, reply_count(reply, "bytes"));
    text_puts(out, " freed.\n");
}

static int vacuum_run(Context *c, void *settings, char **arguments) {
    const VacuumSettings *o = settings;
    json_t *reply;
    int r;

    if (!o->bytes.set && !o->segments.set && !o->age.set)
        return complain(STATUS_USAGE,
                        "No limit given; use --size=SIZE, --time=SPAN or --segments=N.");
    if (o->bytes.n > INT64_MAX || o->segments.n > INT64_MAX)
        return complain(STATUS_USAGE, "This limit is too large.");
    r = remote_ask(c, "Vacuum", vacuum_parameters_of(o), &reply);
    if (r != STATUS_OK)
        return r;
    if (!c->json)
        vacuum_report(c, reply);
    return reply_print_done(c, r, reply);
}

/* clang-format off */
static const Option vacuum_options[] = {
    {'s', "size",     "SIZE", "Until all sessions together take at most SIZE, such as 500M", vacuum_option_bytes, offsetof(VacuumSettings, bytes)},
    {'t', "time",     "SPAN", "Until no segment is older than SPAN, such as 2d or 12h",            option_span,  offsetof(VacuumSettings, age)},
    {'n', "segments", "N",    "Until no session has more than N segments",                         vacuum_option_count, offsetof(VacuumSettings, segments)},
    {},
};
/* clang-format on */

const Command command_vacuum = {
    .name = "vacuum",
    .arguments = "",
    .summary = "Delete old segments until they fit the limits",
    .notes = "Deletes the oldest segments first, and no open segment or snapshot.",
    .options = vacuum_options,
    .settings_size = sizeof(VacuumSettings),
    .run = vacuum_run,
};
