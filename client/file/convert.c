/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/convert.h"

#include <errno.h>
#include <string.h>

#include "client/file/event-feature.h"
#include "client/file/filter.h"
#include "client/file/recording.h"
#include "client/file/sink.h"
#include "client/file/target.h"
#include "perfdata/order/order.h"
#include "perfdata/writer/encode.h"

/*
 * `profctl convert`: writes a recording in another container, or a part of it. Records go from the
 * reader through the filter to the sink, one by one and in order. Only records of a folder, which
 * has several files and no rounds, are sorted by time, and all records if samples are selected by
 * comm or control group. Features and attrs are copied as bytes, in the same byte order.
 *
 * The header records of a stream become sections, unless the result is a stream too; then they are
 * copied in place.
 */

typedef struct ConvertTime {
    bool set, from_end;
    uint64_t ns;
} ConvertTime;

typedef struct ConvertSettings {
    unsigned layout; /* index of the word, from 1; 0: chosen by OUT */
    int zstd_level;
    ConvertTime since, until;
    OptionWords events;
    SelectorOptions selected;
    bool force;
} ConvertSettings;

typedef struct Convert {
    Context *context;
    const ConvertSettings *settings;
    const char *in;
    PdReader *reader;
    PdOrder *order; /* NULL: the file's order is kept */
    Target target;
    Sink sink;
    Filter filter;
    uint64_t records;
    PdEnvironment *environment; /* the features of a stream; NULL: none came */
    PdDamage bad_feature;       /* the first feature that was left out; no text: none */
    bool begun;
    bool verbatim;    /* header records are copied unchanged */
    bool event_types; /* names came from another source than EVENT_DESC */
    bool has_counts;  /* the input is from perf stat record */
    bool behind_attr; /* only EVENT_UPDATEs came since a HEADER_ATTR */
    Buffer updates;   /* EVENT_UPDATEs behind an attr, which wait for the attrs that follow */
} Convert;

enum { UPDATES_MAX = 1024 * 1024 };

/* Seconds of the recording's clock; with a leading -, this long before the last sample. */
static int convert_option_convert_time(const Option *option, const char *argument, void *field) {
    ConvertTime *time = field;
    size_t n;

    time->set = true;
    time->from_end = *argument == '-';
    argument += time->from_end;
    n = strlen(argument);
    if (n > 1 && argument[n - 1] == 's')
        n--;
    return parse_seconds(argument, n, &time->ns);
}

/* clang-format off */
static const Option convert_options[] = {
    {0,   "layout",   LAYOUT_WORDS,           "Layout of OUT; by default a file, and for - a stream",      option_choice,       offsetof(ConvertSettings, layout)},
    {0,   "compress", "zstd[:LEVEL]|none",   "Compress records by zstd, level 1 to 22; none is the default",      option_compress,     offsetof(ConvertSettings, zstd_level)},
    {0,   "since",    "TIME",                "Leave out samples before TIME, as perf script prints it; -5s is 5 s before the last", convert_option_convert_time, offsetof(ConvertSettings, since)},
    {0,   "until",    "TIME",                "Leave out samples from TIME on",                                     convert_option_convert_time, offsetof(ConvertSettings, until)},
    {'e', "event",    "NAME,…",              "Keep only the samples of these events",                         option_words,        offsetof(ConvertSettings, events)},
    {'p', "pid",      "PID,…",               "Keep only the samples of these processes",                      option_numbers,      offsetof(ConvertSettings, selected.pids)},
    {'t', "tid",      "TID,…",               "Keep only the samples of these threads",                        option_numbers,      offsetof(ConvertSettings, selected.tids)},
    {0,   "comm",     "NAME,…",              "Keep only the samples of threads with these names",             option_words,        offsetof(ConvertSettings, selected.comms)},
    {'G', "cgroup",   "PATH,…",              "Keep only the samples of these control groups and those below them", option_words, offsetof(ConvertSettings, selected.cgroups)},
    {'u', "unit",     "UNIT,…",              "Keep only the samples of these systemd units, as shop or 'web@*'", option_words,     offsetof(ConvertSettings, selected.units)},
    {'C', "cpu",      "CPU,…",               "Keep only the samples of these CPUs, such as 0-3,8",      option_numbers,      offsetof(ConvertSettings, selected.cpus)},
    {'f', "force",    NULL,                  "Replace OUT if it exists",                                    option_flag,         offsetof(ConvertSettings, force)},
    {},
};
/* clang-format on */

static void convert_done(Convert *c) {
    c->order = pd_order_free(c->order);
    c->reader = pd_reader_free(c->reader);
    sink_done(&c->sink);
    c->environment = pd_environment_free(c->environment);
    filter_done(&c->filter);
    buffer_done(&c->updates);
    target_done(&c->target);
}

/* Only a stream has its header in records; in a file the same types are ordinary records. */
static bool convert_is_header_record(const Convert *c, uint32_t type) {
    return pd_reader_header(c->reader)->mode == PD_MODE_PIPE &&
           (type == PD_RECORD_HEADER_ATTR || type == PD_RECORD_EVENT_TYPE ||
            type == PD_RECORD_TRACING_DATA || type == PD_RECORD_BUILD_ID ||
            type == PD_RECORD_HEADER_FEATURE);
}

static const PdEvents *convert_events_out(const Convert *c) {
    return c->filter.kept ?: pd_reader_events(c->reader);
}

static int convert_set_groups(Convert *c) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    bool swap = c->sink.options.swap;
    Bytes groups;
    int r;

    if (!pd_reader_has_feature(c->reader, PD_FEATURE_GROUP_DESC))
        return 0;
    r = pd_environment_new(&env);
    if (r == 0)
        r = pd_reader_feature(c->reader, PD_FEATURE_GROUP_DESC, &groups);
    if (r == 0)
        r = group_desc_add(env, groups, swap, c->filter.new_index, c->filter.n_chosen);
    if (r == 0)
        r = pd_environment_write(env, PD_FEATURE_GROUP_DESC, &body, swap);
    if (r == -ENOENT || r == -EBADMSG)
        return 0;
    return r < 0
               ? r
               : pd_writer_set_feature(c->sink.writer, PD_FEATURE_GROUP_DESC, buffer_bytes(&body));
}

static int convert_set_event_desc(Convert *c) {
    _cleanup_(buffer_done) Buffer body = {};

    pd_encode_event_desc(&body, convert_events_out(c), c->sink.options.swap);
    return buffer_error(&body)
               ?: pd_writer_set_feature(c->sink.writer, PD_FEATURE_EVENT_DESC, buffer_bytes(&body));
}

static int convert_set_sample_time(Convert *c) {
    uint8_t body[16];

    store_u64(body, c->filter.first_time, c->sink.options.swap);
    store_u64(body + 8, c->filter.last_time, c->sink.options.swap);
    return pd_writer_set_feature(c->sink.writer, PD_FEATURE_SAMPLE_TIME,
                                 (Bytes){.data = body, .size = sizeof(body)});
}

/* Copies the features that are known so far; for a stream all are known only at its end. */
static int convert_carry_features(Convert *c) {
    bool skip[PD_FEATURE_BITS] = {};
    bool has_desc = pd_reader_has_feature(c->reader, PD_FEATURE_EVENT_DESC);
    int r;

    skip[PD_FEATURE_SAMPLE_TIME] = skip[PD_FEATURE_PROFD_COVERAGE] = filter_is_set(&c->filter);
    skip[PD_FEATURE_EVENT_DESC] = skip[PD_FEATURE_GROUP_DESC] = c->filter.kept;
    r = sink_carry_features(&c->sink, c->reader, skip, &c->bad_feature);
    if (r == 0 && (c->filter.kept ? has_desc || c->event_types : c->event_types && !has_desc))
        r = convert_set_event_desc(c);
    if (r >= 0 && c->filter.kept)
        r = convert_set_groups(c);
    return r < 0 ? r : 0;
}

/* A stream cannot hold long bodies, nor features that perf 6.1 does not know. */
static void convert_report_left_out(const Convert *c) {
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++)
        if (bit != PD_FEATURE_PROFD_COVERAGE && pd_writer_left_out(c->sink.writer, bit))
            remark(c->context, "A stream cannot hold the feature %s of '%s'; it is left out.",
                   pd_feature_name(bit) ?: "of an unknown number", recording_name(c->in));
}

/* Sets features without a body, which in a stream look like the end mark; its records imply
 * them. */
static int convert_set_implied_features(Convert *c) {
    const PdEvents *events = convert_events_out(c);
    int r = 0;

    if (pd_reader_header(c->reader)->mode != PD_MODE_PIPE)
        return 0;
    if (c->has_counts)
        r = pd_writer_set_feature(c->sink.writer, PD_FEATURE_STAT, (Bytes){});
    for (size_t i = 0; r == 0 && i < pd_events_count(events); i++) {
        const PdAttr *attr = &pd_events_at(events, i)->attr;

        /* Branches that form a call chain do not imply the feature. */
        if (attr->sample_type & PD_SAMPLE_BRANCH_STACK &&
            !(attr->branch_sample_type & PD_BRANCH_CALL_STACK))
            r = pd_writer_set_feature(c->sink.writer, PD_FEATURE_BRANCH_STACK, (Bytes){});
    }
    return r;
}

static int convert_copy_record(Convert *c, PdRecord *record, const PdStamp *stamp) {
    int r = filter_is_set(&c->filter) ? filter_record(&c->filter, record, stamp) : 1;

    return r > 0 ? sink_write(&c->sink, c->reader, record, stamp->has_time ? stamp->time : 0) : r;
}

static int convert_copy_updates(Convert *c) {
    int r = 0;

    for (size_t at = 0; r >= 0 && at < c->updates.size;) {
        PdRecord record = pd_record_at(c->updates.data + at, c->sink.options.swap);

        at += record.size;
        r = convert_copy_record(c, &record, &(PdStamp){});
    }
    buffer_done(&c->updates);
    return r;
}

static int convert_begin(Convert *c) {
    const char *name = NULL;
    int r = filter_begin(&c->filter, pd_reader_events(c->reader), &name);

    c->begun = true;
    if (r == -ENOENT && name) {
        complain(STATUS_FAILED, "'%s' has no event '%s'; 'profctl info' lists its events.",
                 recording_name(c->in), name);
        return -ECANCELED;
    }
    if (r == 0 && !c->verbatim)
        r = convert_carry_features(c);
    if (r == 0 && !c->verbatim)
        r = sink_add_events(&c->sink, convert_events_out(c));
    if (r == 0)
        r = sink_begin(&c->sink, convert_events_out(c), c->order != NULL);
    return r == 0 ? convert_copy_updates(c) : r;
}

static bool convert_is_name(const PdRecord *record) {
    return record->size >= PD_RECORD_HEADER_SIZE + sizeof(uint64_t) &&
           load_u64(record->data + PD_RECORD_HEADER_SIZE, record->swap) == PD_EVENT_UPDATE_NAME;
}

/*
 * A stream of ours has the name of an event in an EVENT_UPDATE after its HEADER_ATTR, since perf
 * reads the name only there. If there is an EVENT_DESC, drop this EVENT_UPDATE again, so that a
 * file converted to a stream and back stays the same. perf itself puts it after the features, but
 * perf stat has none, and puts units and CPUs there as well: these are copied.
 *
 * 1: the record is an EVENT_UPDATE and handled; 0: it is to be copied.
 */
static int convert_take_update(Convert *c, const PdRecord *record) {
    bool behind = c->behind_attr;

    c->behind_attr =
        record->type == PD_RECORD_HEADER_ATTR || (behind && record->type == PD_RECORD_EVENT_UPDATE);
    if (!behind || record->type != PD_RECORD_EVENT_UPDATE || c->verbatim)
        return 0;
    if (convert_is_name(record)) {
        c->event_types = true;
        return 1;
    }
    if (c->begun || record->size > UPDATES_MAX - c->updates.size)
        return 0;
    buffer_append(&c->updates, record->data, record->size);
    return buffer_error(&c->updates) ?: 1;
}

/* 1: the HEADER_FEATURE is copied unchanged; 0: it is dropped. */
static int convert_hand_on_feature(Convert *c, const PdRecord *record) {
    PdBody body;
    unsigned bit;
    int r;

    if (pd_record_parse(record, NULL, &body) < 0 || body.header_feature.feature >= PD_FEATURE_BITS)
        return 1;
    bit = (unsigned)body.header_feature.feature;
    if (bit == PD_FEATURE_COMPRESSED || bit == PD_FEATURE_DIR_FORMAT)
        return 0;
    /* An empty body marks the end of the features. */
    if (bit == 0 || body.header_feature.body.size == 0)
        return 1;
    r = c->environment ? 0 : pd_environment_new(&c->environment);
    if (r == 0)
        r = pd_environment_read(c->environment, bit, body.header_feature.body, record->swap);
    if (r == -EBADMSG && c->bad_feature.text[0] == '\0') {
        pd_feature_damage(c->reader, bit, r, &c->bad_feature);
        c->bad_feature.offset = record->offset;
    }
    return r == -EBADMSG ? 0 : r < 0 ? r : 1;
}

/* Build ids and tracing data that come after the features were written. */
static bool convert_is_late(const Convert *c, uint32_t type) {
    return c->begun && c->sink.options.layout == PD_LAYOUT_PIPE &&
           (type == PD_RECORD_BUILD_ID || type == PD_RECORD_TRACING_DATA);
}

/* Handles a header record of a stream; the reader has already processed its content. */
static int convert_take_header_record(Convert *c, const PdRecord *record) {
    int r = 1;

    if (record->type == PD_RECORD_EVENT_TYPE)
        c->event_types = true;
    if (!c->verbatim && convert_is_late(c, record->type))
        return sink_write(&c->sink, c->reader, record, 0);
    if (!c->verbatim)
        return c->begun && !c->filter.kept ? sink_add_events(&c->sink, convert_events_out(c)) : 0;
    if (record->type == PD_RECORD_HEADER_FEATURE)
        r = convert_hand_on_feature(c, record);
    return r > 0 ? sink_write(&c->sink, c->reader, record, 0) : r;
}

static int convert_take_record(Convert *c, PdRecord *record, const PdStamp *stamp) {
    int r;

    c->records++;
    r = convert_take_update(c, record);
    if (r != 0)
        return MIN(r, 0);
    if (!c->begun && (c->verbatim || !convert_is_header_record(c, record->type)))
        r = convert_begin(c);
    if (r < 0)
        return r;
    if (convert_is_header_record(c, record->type))
        return convert_take_header_record(c, record);
    c->has_counts |= record->type == PD_RECORD_STAT_CONFIG;
    return convert_copy_record(c, record, stamp);
}

static int convert_next_record(Convert *c, PdRecord *record, PdStamp *stamp) {
    int r;

    if (c->order)
        return pd_order_next(c->order, record, stamp);
    r = pd_reader_next(c->reader, record);
    *stamp = (PdStamp){};
    if (r > 0)
        (void)pd_events_stamp(pd_reader_events(c->reader), record, stamp);
    return r;
}

static int convert_copy_records(Convert *c) {
    PdRecord record;
    PdStamp stamp;
    int r, q;

    while ((r = convert_next_record(c, &record, &stamp)) > 0) {
        q = convert_take_record(c, &record, &stamp);
        if (q < 0)
            return q;
    }
    if (r == 0 && !c->begun)
        r = convert_begin(c);
    if (r == 0 && c->sink.options.layout != PD_LAYOUT_PIPE) {
        r = convert_carry_features(c);
        r = r < 0 ? r : convert_set_implied_features(c);
    }
    if (r == 0 && filter_is_set(&c->filter) &&
        pd_reader_has_feature(c->reader, PD_FEATURE_SAMPLE_TIME))
        r = convert_set_sample_time(c);
    return r >= 0 ? sink_finish(&c->sink) : r;
}

/* -5s means this long before the last sample, which a first pass over the records finds. */
static int convert_last_sample_time(Convert *c, uint64_t *ret) {
    uint64_t last = 0;
    PdRecord record;
    PdStamp stamp;
    int r;

    r = pd_reader_rewind(c->reader);
    if (r < 0)
        return r;
    while ((r = convert_next_record(c, &record, &stamp)) > 0)
        if (record.type == PD_RECORD_SAMPLE && stamp.has_time)
            last = MAX(last, stamp.time);
    *ret = last;
    return r < 0 ? r : pd_reader_rewind(c->reader);
}

static uint64_t convert_resolve_time(const ConvertTime *time, uint64_t last, uint64_t otherwise) {
    if (!time->set)
        return otherwise;
    if (!time->from_end)
        return time->ns;
    return last > time->ns ? last - time->ns : 0;
}

static int convert_set_filter(Convert *c) {
    const ConvertSettings *s = c->settings;
    uint64_t last = 0;
    int r = 0;

    c->filter.names = &s->events;
    c->filter.by_time = s->since.set || s->until.set;
    r = selector_init(&c->filter.selector, &s->selected);
    if (r == 0 && ((s->since.set && s->since.from_end) || (s->until.set && s->until.from_end)))
        r = convert_last_sample_time(c, &last);
    if (r == -ESPIPE) {
        complain(STATUS_FAILED, "A time from the end needs a file; '%s' can be read only once.",
                 recording_name(c->in));
        return -ECANCELED;
    }
    c->filter.since = convert_resolve_time(&s->since, last, 0);
    c->filter.until = convert_resolve_time(&s->until, last, UINT64_MAX);
    return r;
}

static int convert_prepare(Convert *c) {
    const PdHeader *header = pd_reader_header(c->reader);
    PdWriterOptions options = {
        .layout = c->target.layout,
        .swap = header->swap,
        .zstd_level = c->settings->zstd_level,
        .n_files = c->target.layout == PD_LAYOUT_DIRECTORY ? 1 : 0,
    };
    int r = convert_set_filter(c);

    if (r == 0 && (header->mode == PD_MODE_DIRECTORY || selector_needs_order(&c->filter.selector)))
        r = pd_order_new(c->reader, NULL, &c->order);
    if (r < 0)
        return r;
    c->event_types = header->magic_version == 1;
    c->verbatim = header->mode == PD_MODE_PIPE && options.layout == PD_LAYOUT_PIPE &&
                  c->settings->events.n == 0;
    return sink_open(&c->sink, c->target.fd, &options);
}

static int convert(Convert *c) {
    int r = convert_prepare(c), status;

    if (r == 0)
        r = convert_copy_records(c);
    if (r == -ECANCELED)
        return STATUS_FAILED;
    if (r == 0 && c->records == 0 && pd_reader_damage(c->reader)) {
        recording_verdict(c->in, c->reader, NULL);
        return STATUS_FAILED;
    }
    status =
        r == 0 ? selector_verdict(&c->filter.selector, c->reader, c->in, "samples") : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (r == 0)
        r = target_commit(&c->target);
    if (r == 0) {
        convert_report_left_out(c);
        return recording_verdict(c->in, c->reader, &c->bad_feature);
    }
    if (r == -EPIPE)
        return STATUS_FAILED;
    return target_complain(&c->target, r);
}

static int convert_run(Context *context, void *settings, char **arguments) {
    const ConvertSettings *s = settings;
    PdLayout layout = layout_chosen(s->layout, arguments[1]);
    _cleanup_(convert_done)
        Convert c = {.context = context, .settings = s, .in = arguments[0], .target = {.fd = -1}};
    int r;

    if (recording_open(c.in, &c.reader) != STATUS_OK)
        return STATUS_FAILED;
    r = target_open(&c.target, arguments[1], layout, s->force);
    return r < 0 ? target_complain(&c.target, r) : convert(&c);
}

int convert_to_stream(Context *c, const char *in) {
    ConvertSettings settings = {};

    return convert_run(c, &settings, (char *[]){(char *)in, (char[]){"-"}, NULL});
}

static void convert_settings_done(void *settings) {
    ConvertSettings *s = settings;

    option_words_done(&s->events);
    selector_options_done(&s->selected);
}

static bool convert_streams(const void *settings, char **arguments) {
    return strcmp(arguments[1], "-") == 0;
}

const Command command_convert = {
    .name = "convert",
    .group = COMMAND_RECORDING,
    .arguments = "IN OUT",
    .n_min = 2,
    .n_max = 2,
    .summary = "Write a recording, or a part of it, in another layout",
    .notes = "IN is a file, a folder, or - for a stream on standard input. OUT is a new file "
             "or\nfolder, or - for a stream on standard output. Every layout holds the same "
             "records.\nOUT appears when it is complete. The status is 8 when IN is damaged: OUT "
             "then holds\nthe part that could be read.",
    .options = convert_options,
    .settings_size = sizeof(ConvertSettings),
    .run = convert_run,
    .done = convert_settings_done,
    .streams = convert_streams,
};
