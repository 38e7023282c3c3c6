/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/merge/merge-state.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "client/file/recording.h"

/*
 * `profctl merge`: merges several recordings of one host into one. Each is read twice: once to see
 * what it contains, then in order of time, so that the earliest next record is always known.
 * Records of tools, which have no time, are copied in place.
 *
 * Records that perf writes at the start about running processes have the time 0 and would take
 * effect at the beginning of the result. This is right only for the earliest recording; in a later
 * one they get the time at which it begins, because before that a pid may have been another
 * process.
 */

typedef struct MergeSettings {
    const char *out;
    unsigned layout;
    int zstd_level;
    bool force;
} MergeSettings;

/* clang-format off */
static const Option merge_options[] = {
    {'o', "output",   "FILE",              "Recording to write; - is a stream on standard output",               option_string,   offsetof(MergeSettings, out)},
    {0,   "layout",   LAYOUT_WORDS,        "Its layout; by default a file, and for - a stream",         option_choice,   offsetof(MergeSettings, layout)},
    {0,   "compress", "zstd[:LEVEL]|none", "Compress records by zstd, level 1 to 22; none is the default", option_compress, offsetof(MergeSettings, zstd_level)},
    {'f', "force",    NULL,                "Replace the file if it exists",                               option_flag,     offsetof(MergeSettings, force)},
    {},
};
/* clang-format on */

static void merge_done(Merge *m) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        MergeInput *in = &m->inputs[i];

        pd_order_free(in->order);
        pd_rewriter_free(in->rewriter);
        pd_reader_free(in->reader);
        free(in->index);
    }
    free(m->inputs);
    pd_events_free(m->events);
    sink_done(&m->sink);
    target_done(&m->target);
    buffer_done(&m->rewritten);
}

static int merge_advance(MergeInput *in) {
    int r = pd_order_next(in->order, &in->record, &in->stamp);

    in->ended = r == 0;
    return r < 0 ? r : 0;
}

/* The time at which to write the record. A record without a time keeps its place, which in a later
 * recording is not before its beginning. */
static uint64_t merge_due(const Merge *m, const MergeInput *in) {
    uint64_t time = in->record.type < PD_RECORD_USER && in->stamp.has_time ? in->stamp.time : 0;

    return in == m->inputs ? time : MAX(time, in->first_time);
}

static MergeInput *merge_next_input(const Merge *m) {
    MergeInput *next = NULL;

    for (size_t i = 0; i < m->n_inputs; i++) {
        MergeInput *in = &m->inputs[i];

        if (!in->ended && (!next || merge_due(m, in) < merge_due(m, next)))
            next = in;
    }
    return next;
}

/* Whether the record may come from one recording only, or is made again. */
static bool merge_is_left_to_us(Merge *m, const MergeInput *in) {
    bool had;

    switch (in->record.type) {
    case PD_RECORD_HEADER_ATTR:
    case PD_RECORD_EVENT_TYPE:
    case PD_RECORD_TRACING_DATA:
    case PD_RECORD_BUILD_ID:
    case PD_RECORD_HEADER_FEATURE:
    case PD_RECORD_FINISHED_ROUND:
        return true;
    case PD_RECORD_TIME_CONV:
        had = m->has_time_conv;
        m->has_time_conv = true;
        return had;
    case PD_RECORD_THREAD_MAP:
    case PD_RECORD_CPU_MAP:
        return in != m->inputs;
    case PD_RECORD_FINISHED_INIT:
        had = m->has_finished_init;
        m->has_finished_init = true;
        return had;
    default:
        return false;
    }
}

static int merge_write_next(Merge *m, MergeInput *in) {
    PdRecord record = in->record;
    uint64_t time = merge_due(m, in);
    int r;

    if (merge_is_left_to_us(m, in))
        return 0;
    m->now = MAX(m->now, time);
    if (in != m->inputs)
        pd_rewriter_set_zero_time(in->rewriter, m->now);
    buffer_clear(&m->rewritten);
    r = pd_rewriter_record(in->rewriter, &record, &in->stamp, &m->rewritten);
    if (r == -EBADMSG || r == -EMSGSIZE) {
        m->left_out++;
        return 0;
    }
    if (r <= 0)
        return r;
    record.data = m->rewritten.data;
    record.size = (uint32_t)m->rewritten.size;
    return sink_write(&m->sink, in->reader, &record, time);
}

static int merge_copy_records(Merge *m) {
    MergeInput *in;
    int r = 0;

    for (size_t i = 0; r == 0 && i < m->n_inputs; i++) {
        r = pd_order_new(m->inputs[i].reader, NULL, &m->inputs[i].order);
        if (r == 0)
            r = merge_advance(&m->inputs[i]);
    }
    while (r == 0 && (in = merge_next_input(m))) {
        r = merge_write_next(m, in);
        if (r == 0)
            r = merge_advance(in);
    }
    return r;
}

static int merge_write_all(Merge *m, int zstd_level) {
    PdWriterOptions options = {
        .layout = m->target.layout,
        .swap = pd_reader_header(m->inputs[0].reader)->swap,
        .zstd_level = zstd_level,
        .n_files = m->target.layout == PD_LAYOUT_DIRECTORY ? 1 : 0,
    };
    int r = merge_plan_events(m);

    if (r == 0)
        r = sink_open(&m->sink, m->target.fd, &options);
    if (r == 0)
        r = merge_features(m);
    if (r == 0)
        r = sink_add_events(&m->sink, m->events);
    if (r == 0)
        r = sink_begin(&m->sink, m->events, true);
    if (r == 0)
        r = merge_copy_records(m);
    if (r == 0)
        r = sink_finish(&m->sink);
    return r == 0 ? target_commit(&m->target) : r;
}

static int merge_verdict(const Merge *m) {
    int worst = STATUS_OK;

    for (size_t i = 0; i < m->n_inputs; i++) {
        const MergeInput *in = &m->inputs[i];

        if (recording_verdict(in->path, in->reader, &in->bad_feature) != STATUS_OK)
            worst = STATUS_PARTIAL;
    }
    if (m->left_out > 0)
        worst = complain(STATUS_PARTIAL, "%" PRIu64 " records could not be copied to '%s'.",
                         m->left_out, m->target.path);
    return worst;
}

static int merge_open_inputs(Merge *m, char **paths) {
    size_t n = 0;

    while (paths[n])
        n++;
    m->inputs = calloc(n, sizeof(*m->inputs));
    if (!m->inputs)
        return complain(STATUS_FAILED, "There is not enough memory.");
    for (; m->n_inputs < n; m->n_inputs++) {
        m->inputs[m->n_inputs].path = paths[m->n_inputs];
        if (recording_open(paths[m->n_inputs], &m->inputs[m->n_inputs].reader) != STATUS_OK)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

static int merge_run(Context *context, void *settings, char **arguments) {
    const MergeSettings *s = settings;
    _cleanup_(merge_done) Merge m = {.context = context, .target = {.fd = -1}};
    int r, status;

    if (!s->out)
        return complain(STATUS_USAGE, "merge needs -o FILE, the recording to write.");
    r = target_open(&m.target, s->out, layout_chosen(s->layout, s->out), s->force);
    if (r < 0)
        return target_complain(&m.target, r);
    status = merge_open_inputs(&m, arguments);
    if (status == STATUS_OK)
        status = merge_scan(&m);
    if (status == STATUS_OK)
        status = merge_compare(&m);
    if (status != STATUS_OK)
        return status;
    r = merge_write_all(&m, s->zstd_level);
    if (r == -ECANCELED || r == -EPIPE)
        return STATUS_FAILED;
    if (r == -E2BIG)
        return complain(STATUS_FAILED,
                        "Together the recordings have more events than one recording can have.");
    return r < 0 ? target_complain(&m.target, r) : merge_verdict(&m);
}

static bool merge_streams(const void *settings, char **arguments) {
    const MergeSettings *s = settings;

    return s->out && strcmp(s->out, "-") == 0;
}

const Command command_merge = {
    .name = "merge",
    .group = COMMAND_RECORDING,
    .arguments = "IN…",
    .n_min = 1,
    .n_max = UINT32_MAX,
    .summary = "Write several recordings of one host as one",
    .notes = "Each IN is a file or a folder. Recordings of another host, kernel, boot, byte order\n"
             "or clock are refused. Equal events become one event; ids that two events share "
             "are\nreplaced. The status is 8 when something could not be copied.",
    .options = merge_options,
    .settings_size = sizeof(MergeSettings),
    .run = merge_run,
    .streams = merge_streams,
};
