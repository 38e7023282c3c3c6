/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info/info-state.h"

#include <inttypes.h>
#include <time.h>

#include "client/file/recording.h"
#include "client/frame/screen.h"
#include "client/frame/text-table.h"
#include "client/remote/coverage-text.h"
#include "util/text.h"

/*
 * `info` for people. What the recording contains and whether it is complete comes first, since that
 * is asked most often and fits on a screen; then the header in the format of perf report
 * --header-only -I, so that people who know that find everything in its place.
 */

/* perf counts versions from zero, and so do people who compare them. */
static void info_text_print_container(const PdHeader *header, Buffer *out) {
    if (header->mode == PD_MODE_PIPE)
        return;
    text_printf(out, "# header version : %u\n", header->magic_version - 1);
    text_printf(out, "# data offset    : %" PRIu64 "\n", header->data_offset);
    text_printf(out, "# data size      : %" PRIu64 "\n", header->data_size);
    if (!header->unfinished)
        text_printf(out, "# feat offset    : %" PRIu64 "\n",
                    header->data_offset + header->data_size);
}

static void info_text_print_missing(const Info *info, Buffer *out) {
    if (pd_reader_header(info->reader)->unfinished)
        return;
    text_puts(out, "# missing features: ");
    for (unsigned bit = PD_FEATURE_TRACING_DATA; bit <= PD_FEATURE_CLN_SIZE; bit++)
        if (!pd_reader_has_feature(info->reader, bit))
            text_printf(out, "%s ", pd_feature_name(bit));
    text_putc(out, '\n');
}

static void info_text_print_header(const Info *info, Buffer *out) {
    time_t captured = info->captured;
    char text[64] = "";
    struct tm tm;

    text_puts(out, "# ========\n");
    if (captured && localtime_r(&captured, &tm) &&
        strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm) > 0)
        text_printf(out, "# captured on    : %s\n", text);
    info_text_print_container(pd_reader_header(info->reader), out);
    pd_environment_print(info->environment, out);
    info_text_print_missing(info, out);
    text_puts(out, "# ========\n");
}

enum { LABEL_COLUMNS = 10 };

/* The facts at the top, a line each: the next value is made in `text`. */
typedef struct Facts {
    Buffer *out;
    Buffer text;
    size_t width;
} Facts;

/* Prints the value with its label, wrapped on a terminal. */
static void info_text_fact(Facts *facts, const char *label) {
    text_printf(facts->out, "%-*s", LABEL_COLUMNS, label);
    text_putc(&facts->text, '\0');
    screen_wrap(facts->out, buffer_error(&facts->text) ? "?" : (const char *)facts->text.data,
                LABEL_COLUMNS, LABEL_COLUMNS, facts->width);
    buffer_clear(&facts->text);
}

static void info_text_print_several(Buffer *out, uint64_t n, const char *one, const char *many) {
    text_printf(out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

static void info_text_print_complete(const Info *info, Facts *facts) {
    if (info->damage.text[0]) {
        text_puts(&facts->text, "no, ");
        text_escape_str(&facts->text, info->damage.text);
        text_printf(&facts->text, " (offset %" PRIu64 ")", info->damage.offset);
    } else
        text_puts(&facts->text, pd_reader_header(info->reader)->unfinished
                                    ? "no, its recorder never finished it"
                                    : "yes");
    info_text_fact(facts, "Intact");
}

/* Only profd writes this feature. */
static void info_text_print_coverage(const Info *info, Facts *facts) {
    const PdEnvironment *env = info->environment;

    if (!pd_environment_is_of_profd(env))
        return;
    if (env->has[PD_FEATURE_PROFD_COVERAGE])
        coverage_describe(&facts->text, &env->coverage);
    else
        text_puts(&facts->text, "not known");
    info_text_fact(facts, "Coverage");
}

static void info_text_print_unidentified(const Info *info, Facts *facts) {
    uint64_t n = info_unidentified(info);

    if (n == 0)
        return;
    info_text_print_several(&facts->text, n, "file has", "files have");
    text_puts(&facts->text, " no build id, so perf shows addresses instead of functions");
    info_text_fact(facts, "Unnamed");
}

static void info_text_print_stacks(const Info *info, Facts *facts) {
    if (info->has_stacks)
        stack_text_put(&facts->text, &info->stacks);
    if (facts->text.size > 0)
        info_text_fact(facts, "Stacks");
}

static void info_text_print_lost(const Summary *s, Facts *facts) {
    Buffer *out = &facts->text;

    if (s->lost_events > 0)
        info_text_print_several(out, s->lost_events, "record", "records");
    text_puts(out, s->lost_events > 0 && s->lost_samples > 0 ? ", " : "");
    if (s->lost_samples > 0)
        info_text_print_several(out, s->lost_samples, "sample", "samples");
    text_puts(out, s->lost_events + s->lost_samples > 0 ? "" : "none");
    if (s->throttled > 0) {
        text_puts(out, ", throttled ");
        info_text_print_several(out, s->throttled, "time", "times");
    }
    info_text_fact(facts, "Lost");
}

static void info_text_print_time(const Summary *s, Facts *facts) {
    if (s->has_time) {
        text_time_ns(&facts->text, s->first_time);
        text_puts(&facts->text, " to ");
        text_time_ns(&facts->text, s->last_time);
        text_puts(&facts->text, ", ");
        text_time_ns(&facts->text, s->last_time - s->first_time);
        text_puts(&facts->text, " s");
    } else
        text_puts(&facts->text, "not recorded");
    info_text_fact(facts, "Time");
}

static void info_text_print_overview(const Context *c, const Info *info, Buffer *out) {
    const PdHeader *header = pd_reader_header(info->reader);
    const Summary *s = &info->summary;
    size_t width = context_width(c);
    Facts facts = {.out = out, .width = width ? width : SIZE_MAX};

    /* A name is never broken, so that it can be copied. */
    text_printf(out, "%-*s", LABEL_COLUMNS, "File");
    text_escape_str(out, recording_name(info->path));
    text_putc(out, '\n');
    text_printf(&facts.text, "%s, %s endian", recording_mode_name(header->mode),
                header->big_endian ? "big" : "little");
    if (header->n_files > 1)
        text_printf(&facts.text, ", %u files", header->n_files);
    info_text_fact(&facts, "Layout");
    text_printf(&facts.text, "%" PRIu64, s->records);
    info_text_fact(&facts, "Records");
    text_printf(&facts.text, "%" PRIu64 ", of ", s->samples);
    info_text_print_several(&facts.text, s->pids.index.n, "process", "processes");
    text_puts(&facts.text, " and ");
    info_text_print_several(&facts.text, s->tids.index.n, "thread", "threads");
    info_text_fact(&facts, "Samples");
    info_text_print_time(s, &facts);
    info_text_print_lost(s, &facts);
    info_text_print_unidentified(info, &facts);
    info_text_print_stacks(info, &facts);
    info_text_print_coverage(info, &facts);
    info_text_print_complete(info, &facts);
    buffer_done(&facts.text);
}

static void info_text_share_cell(Table *table, uint64_t n, uint64_t all) {
    table_printf(table, "%.1f%%", all > 0 ? 100.0 * (double)n / (double)all : 0.0);
}

/* Rows of types that exist only on disk: the containers of compressed records. */
typedef struct DiskRows {
    const Info *info;
    Table *table;
} DiskRows;

static void info_text_type_cell(Table *table, uint32_t type) {
    const char *name = pd_record_type_name(type);

    if (name)
        table_printf(table, "%s", name);
    else
        table_printf(table, "%" PRIu32, type);
}

static void info_text_print_container_row(uint32_t type, uint64_t n, void *arg) {
    DiskRows *rows = arg;
    const Summary *s = &rows->info->summary;

    for (size_t i = 0; i < s->n_types; i++)
        if (s->types[i].type == type)
            return;
    info_text_type_cell(rows->table, type);
    table_printf(rows->table, "-");
    table_printf(rows->table, "-");
    table_count(rows->table, n);
}

static bool info_text_is_compressed(const PdReader *reader) {
    return pd_reader_on_disk(reader, PD_RECORD_COMPRESSED) > 0 ||
           pd_reader_on_disk(reader, PD_RECORD_COMPRESSED2) > 0;
}

static int info_text_print_types(const Context *c, const Info *info, Buffer *out) {
    Column columns[] = {{.name = "TYPE"},
                        {.name = "RECORDS", .right = true},
                        {.name = "SHARE", .right = true},
                        {.name = "ON DISK", .right = true},
                        {}};
    _cleanup_(table_freep) Table *table = NULL;
    bool compressed = info_text_is_compressed(info->reader);
    const Summary *s = &info->summary;
    int r;

    if (!compressed)
        columns[3] = (Column){};
    r = table_new(c, columns, &table);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_types; i++) {
        info_text_type_cell(table, s->types[i].type);
        table_count(table, s->types[i].n);
        info_text_share_cell(table, s->types[i].n, s->records);
        if (compressed)
            table_count(table, pd_reader_on_disk(info->reader, s->types[i].type));
    }
    if (compressed)
        pd_reader_each_on_disk(info->reader, info_text_print_container_row,
                               &(DiskRows){info, table});
    text_putc(out, '\n');
    return table_print(table, out);
}

static void info_text_rate_cell(Table *table, const PdAttr *attr) {
    if (attr->flags & PD_ATTR_FREQ)
        table_printf(table, "%" PRIu64 " Hz", attr->sample_period);
    else if (attr->sample_period > 0)
        table_printf(table, "every %" PRIu64, attr->sample_period);
    else
        table_printf(table, "none");
}

static int info_text_print_events(const Context *c, const Info *info, Buffer *out) {
    static const Column columns[] = {
        {.name = "EVENT", .shrinks = true}, {.name = "RATE", .right = true},
        {.name = "SAMPLES", .right = true}, {.name = "SHARE", .right = true},
        {.name = "PERIODS", .right = true}, {}};
    _cleanup_(table_freep) Table *table = NULL;
    const PdEvents *events = pd_reader_events(info->reader);
    const Summary *s = &info->summary;
    int r = table_new(c, columns, &table);

    if (r < 0)
        return r;
    for (size_t i = 0; i < pd_events_count(events); i++) {
        const PdEvent *event = pd_events_at(events, i);
        SummaryEvent counted = i < s->n_events ? s->events[i] : (SummaryEvent){};

        table_printf(table, "%s", event->name);
        info_text_rate_cell(table, &event->attr);
        table_count(table, counted.samples);
        info_text_share_cell(table, counted.samples, s->samples);
        table_count(table, counted.period_sum);
    }
    text_putc(out, '\n');
    return table_print(table, out);
}

static int info_text_print_top(const Context *c, const Info *info, Buffer *out) {
    static const Column columns[] = {{.name = "COMMAND"},
                                     {.name = "DSO", .shrinks = true},
                                     {.name = "SAMPLES", .right = true},
                                     {.name = "SHARE", .right = true},
                                     {}};
    _cleanup_(table_freep) Table *table = NULL;
    Share shares[INFO_TOP];
    int n = attribution_top_dsos(info->attribution, shares, INFO_TOP), r;

    if (n <= 0)
        return n;
    r = table_new(c, columns, &table);
    if (r < 0)
        return r;
    for (int i = 0; i < n; i++) {
        table_bytes(table, shares[i].comm);
        table_bytes(table, shares[i].dso);
        table_count(table, shares[i].samples);
        info_text_share_cell(table, shares[i].samples, info->summary.samples);
    }
    text_putc(out, '\n');
    return table_print(table, out);
}

int info_print_text(const Context *c, const Info *info, Buffer *out) {
    int r;

    info_text_print_overview(c, info, out);
    r = info_text_print_types(c, info, out);
    if (r >= 0)
        r = info_text_print_events(c, info, out);
    if (r >= 0)
        r = info_text_print_top(c, info, out);
    text_putc(out, '\n');
    info_text_print_header(info, out);
    return r < 0 ? r : buffer_error(out);
}
