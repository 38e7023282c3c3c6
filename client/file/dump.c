/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/file/recording.h"
#include "client/file/selector.h"
#include "client/frame/command.h"
#include "client/frame/time-range.h"
#include "perfdata/describe/record-describe.h"
#include "perfdata/order/order.h"
#include "perfdata/reader/reader.h"
#include "perfdata/tracing/tracing.h"
#include "util/text.h"

/*
 * `profctl dump`: prints every record of a recording on one line, as text or JSON. Records go from
 * the reader (or, in order of time, from a PdOrder) through the filters to the output buffer;
 * nothing is kept, so memory does not grow with the recording. Comms and control groups are known
 * only in order of time, so filters on them switch it on. A record without a property (a time, a
 * process, a CPU) never matches a filter on it and is skipped.
 */

typedef enum DumpSort { SORT_DEFAULT, SORT_FILE, SORT_TIME } DumpSort;

typedef struct DumpSettings {
    TimeRange time;
    OptionWords type_names;
    OptionWords events;
    SelectorOptions selected;
    unsigned sort;
} DumpSettings;

enum { EVENTS_TOLD_MAX = 16 };

typedef struct Dump {
    Context *context;
    const DumpSettings *settings;
    OptionNumbers types;
    TimeRange time;
    const char *path;
    PdReader *reader;
    PdTracing *tracing;
    bool tracing_tried;
    Selector selector;
    Buffer chosen; /* maps an event's index to an EventChoice, for the events seen so far */
} Dump;

typedef enum EventChoice { EVENT_NOT_MET, EVENT_CHOSEN, EVENT_LEFT_OUT } EventChoice;

static void dump_done(Dump *d) {
    option_numbers_done(&d->types);
    d->tracing = pd_tracing_free(d->tracing);
    d->reader = pd_reader_free(d->reader);
    selector_done(&d->selector);
    buffer_done(&d->chosen);
}

static bool dump_event_is_named(const DumpSettings *s, const PdEvent *event) {
    for (size_t i = 0; i < s->events.n; i++)
        if (recording_event_matches(s->events.items[i], event->name))
            return true;
    return false;
}

static bool dump_event_is_chosen(Dump *d, const PdEvent *event) {
    uint8_t *choice;

    if (!event)
        return false;
    if (event->index >= d->chosen.size)
        buffer_zero(&d->chosen, event->index + 1 - d->chosen.size);
    if (buffer_error(&d->chosen))
        return false;
    choice = d->chosen.data + event->index;
    if (*choice == EVENT_NOT_MET)
        *choice = dump_event_is_named(d->settings, event) ? EVENT_CHOSEN : EVENT_LEFT_OUT;
    return *choice == EVENT_CHOSEN;
}

static bool dump_is_wanted(Dump *d, const PdRecord *record, const PdStamp *stamp) {
    const DumpSettings *s = d->settings;

    if (d->types.n > 0 && !option_numbers_hold(&d->types, record->type))
        return false;
    if (s->time.set && !(stamp->has_time && time_range_holds(&d->time, stamp->time)))
        return false;
    if (s->events.n > 0 && !dump_event_is_chosen(d, stamp->event))
        return false;
    return selector_wants(&d->selector, record, stamp);
}

/* In a pipe the tracing data comes as a record before the first sample that needs it, and is no
 * feature of the recording. */
static int dump_load_tracing(Dump *d) {
    Bytes blob;
    int r;

    if (d->tracing_tried)
        return 0;
    r = pd_reader_feature(d->reader, PD_FEATURE_TRACING_DATA, &blob);
    if (r == -ENOENT)
        return 0;
    d->tracing_tried = true;
    if (r >= 0)
        r = pd_tracing_new(blob, &d->tracing);
    return r == -ENOMEM ? r : 0;
}

static int dump_print_record(Dump *d, const PdRecord *record, const PdStamp *stamp) {
    Output *out = &d->context->out;
    Fields fields = fields_to(&out->buffer, context_fields_format(d->context));
    int r = selector_feed(&d->selector, record, stamp);

    if (r < 0 || !dump_is_wanted(d, record, stamp))
        return r;
    if (record->type == PD_RECORD_SAMPLE && stamp->event &&
        stamp->event->attr.type == PD_TYPE_TRACEPOINT) {
        r = dump_load_tracing(d);
        if (r < 0)
            return r;
    }
    fields_begin_object(&fields, NULL);
    pd_record_describe(record, stamp, d->tracing, &fields);
    fields_end_object(&fields);
    text_putc(&out->buffer, '\n');
    return output_breathe(out);
}

static int dump_print_in_file_order(Dump *d) {
    PdRecord record;
    int r, q;

    while ((r = pd_reader_next(d->reader, &record)) > 0) {
        PdStamp stamp = {};

        /* A record too short for its stamp is still printed, as bytes. */
        (void)pd_events_stamp(pd_reader_events(d->reader), &record, &stamp);
        q = dump_print_record(d, &record, &stamp);
        if (q < 0)
            return q;
    }
    return r;
}

static int dump_print_in_time_order(Dump *d) {
    _cleanup_(pd_order_freep) PdOrder *order = NULL;
    PdRecord record;
    PdStamp stamp;
    int r, q;

    r = pd_order_new(d->reader, NULL, &order);
    if (r < 0)
        return r;
    while ((r = pd_order_next(order, &record, &stamp)) > 0) {
        q = dump_print_record(d, &record, &stamp);
        if (q < 0)
            return q;
    }
    if (r == 0 && pd_order_late(order) > 0)
        remark(d->context,
               "%" PRIu64
               " records of '%s' are out of order: they come after the end of their round.",
               pd_order_late(order), d->path);
    return r;
}

/* Percentages need the time span of the samples: from the file, or from a pass over it. */
static int dump_resolve_time(Dump *d) {
    uint64_t first = UINT64_MAX, last = 0;
    PdRecord record;
    PdStamp stamp;
    int r;

    d->time = d->settings->time;
    if (!d->time.percent)
        return 0;
    while ((r = pd_reader_next(d->reader, &record)) > 0)
        if (record.type == PD_RECORD_SAMPLE &&
            pd_events_stamp(pd_reader_events(d->reader), &record, &stamp) >= 0 && stamp.has_time) {
            first = MIN(first, stamp.time);
            last = MAX(last, stamp.time);
        }
    if (r < 0)
        return r;
    time_range_resolve(&d->time, MIN(first, last), last);
    return pd_reader_rewind(d->reader);
}

/* A name that matches no event is an error; an event without records is not. */
static int dump_check_events(const Dump *d) {
    PdEvents *events = pd_reader_events(d->reader);
    size_t n = pd_events_count(events);
    Buffer names = {};

    for (size_t i = 0; i < n; i++)
        if (dump_event_is_named(d->settings, pd_events_at(events, i)))
            return STATUS_OK;
    for (size_t i = 0; i < n && i < EVENTS_TOLD_MAX; i++)
        text_printf(&names, "%s%s", i > 0 ? ", " : "", pd_events_at(events, i)->name);
    text_putc(&names, '\0');
    complain(STATUS_FAILED, "'%s' has no such event; its events are %s.", recording_name(d->path),
             buffer_error(&names) || n == 0 ? "none" : (const char *)names.data);
    buffer_done(&names);
    return STATUS_FAILED;
}

static int dump_complain_type(const char *name) {
    NearNames near = {};

    pd_record_type_near(name, &near);
    if (near.n > 0)
        return complain(STATUS_USAGE, "There is no type of records '%s'. Did you mean '%s'?", name,
                        near.names[0].name);
    return complain(STATUS_USAGE,
                    "There is no type of records '%s'; a type is a name such as SAMPLE, or a "
                    "number.",
                    name);
}

static int dump_take_types(Dump *d) {
    const OptionWords *names = &d->settings->type_names;
    uint32_t type;

    for (size_t i = 0; i < names->n; i++) {
        if (pd_record_type_from_name(names->items[i], &type) < 0)
            return dump_complain_type(names->items[i]);
        if (option_numbers_add(&d->types, type, type) < 0)
            return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(d->path),
                            strerror(ENOMEM));
    }
    return STATUS_OK;
}

static int dump_run(Context *c, void *settings, char **arguments) {
    _cleanup_(dump_done) Dump d = {.context = c, .settings = settings, .path = arguments[0]};
    int r, status;
    bool by_time;

    if (c->json == JSON_PRETTY)
        c->json = JSON_SHORT;
    status = dump_take_types(&d);
    if (status == STATUS_OK)
        status = recording_open(d.path, &d.reader);
    if (status != STATUS_OK)
        return status;
    r = selector_init(&d.selector, &d.settings->selected);
    if (r >= 0)
        r = dump_resolve_time(&d);
    if (r == -ESPIPE)
        return complain(STATUS_USAGE,
                        "A time in percent needs two passes over '%s', which is a "
                        "stream; give seconds instead.",
                        recording_name(d.path));
    if (r >= 0) {
        context_page(c);
        by_time = d.settings->sort == SORT_TIME || selector_needs_order(&d.selector);
        r = by_time ? dump_print_in_time_order(&d) : dump_print_in_file_order(&d);
    }
    if (r < 0 && c->out.error)
        return STATUS_OK;
    if (r < 0)
        return complain(STATUS_FAILED, "Failed to read '%s': %s.", recording_name(d.path),
                        strerror(-r));
    status = recording_verdict(d.path, d.reader, NULL);
    if (status == STATUS_OK && d.settings->events.n > 0)
        status = dump_check_events(&d);
    if (status == STATUS_OK)
        status = selector_verdict(&d.selector, d.reader, d.path,
                                  d.types.n > 0 ? "records of the chosen types" : "records");
    return status;
}

static int dump_option_ordered(const Option *option, const char *argument, void *field) {
    *(unsigned *)field = SORT_TIME;
    return 0;
}

static void dump_settings_done(void *settings) {
    DumpSettings *s = settings;

    option_words_done(&s->type_names);
    option_words_done(&s->events);
    selector_options_done(&s->selected);
}

/* clang-format off */
static const Option dump_options[] = {
    {0,   "time",    "START,END", "Only from START to END, in seconds as printed; START or END may be left out; 10%-20% and 10%/2 are shares of the recording", option_time_range, offsetof(DumpSettings, time)},
    {'t', "type",    "TYPE,…",    "Only records of these types, by name or number", option_words,   offsetof(DumpSettings, type_names)},
    {'e', "event",   "EVENT,…",   "Only records of these events; * and ? match",    option_words,   offsetof(DumpSettings, events)},
    {'p', "pid",     "PID,…",     "Only records of these processes, and records about them",       option_numbers, offsetof(DumpSettings, selected.pids)},
    {0,   "tid",     "TID,…",     "Only records of these threads, and records about them",         option_numbers, offsetof(DumpSettings, selected.tids)},
    {'C', "cpu",     "CPU,…",     "Only records from these CPUs; ranges such as 0-3",    option_numbers, offsetof(DumpSettings, selected.cpus)},
    {0,   "comm",    "NAME,…",     "Only records of threads with these names",       option_words,  offsetof(DumpSettings, selected.comms)},
    {'G', "cgroup",  "PATH,…",    "Only samples of these control groups and those below them", option_words, offsetof(DumpSettings, selected.cgroups)},
    {'u', "unit",    "UNIT,…",    "Only samples of these systemd units, as shop or 'web@*'", option_words, offsetof(DumpSettings, selected.units)},
    {0,   "sort",    "file|time", "In the order of the file (default) or of time",  option_choice,  offsetof(DumpSettings, sort)},
    {0,   "ordered", NULL,        "The same as --sort=time",                        dump_option_ordered, offsetof(DumpSettings, sort)},
    {},
};
/* clang-format on */

const Command command_dump = {
    .name = "dump",
    .group = COMMAND_RECORDING,
    .arguments = "FILE",
    .n_min = 1,
    .n_max = 1,
    .summary = "Show every record of a recording, one a line",
    .notes = "FILE is a perf.data file, a folder of perf record --threads, or - for a stream on\n"
             "standard input. With --json each line is an object.",
    .options = dump_options,
    .settings_size = sizeof(DumpSettings),
    .run = dump_run,
    .done = dump_settings_done,
};
