/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/recording.h"
#include "client/table.h"
#include "util/text.h"

/*
 * `info` for people: the header as perf report --header-only -I shows it, so that eyes trained on
 * that find everything in its place, then what perf does not tell without a second command: how
 * much of what is in it, and whether it is whole.
 */

static void print_header(const Info *info, Buffer *out) {
    const PdHeader *header = pd_reader_header(info->reader);
    time_t captured = info->captured;
    char text[64] = "";
    struct tm tm;

    text_puts(out, "# ========\n");
    if (captured && localtime_r(&captured, &tm) &&
        strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm) > 0)
        text_printf(out, "# captured on    : %s\n", text);
    if (header->mode != PD_MODE_PIPE) {
        text_printf(out, "# header version : %u\n", header->magic_version);
        text_printf(out, "# data offset    : %" PRIu64 "\n", header->data_offset);
        text_printf(out, "# data size      : %" PRIu64 "\n", header->data_size);
    }
    pd_environment_print(info->environment, out);
    text_puts(out, "# ========\n");
}

static void label(Buffer *out, const char *name) {
    text_printf(out, "%-10s", name);
}

static void print_whole(const Info *info, Buffer *out) {
    label(out, "Whole");
    if (info->damage.text[0]) {
        text_puts(out, "no, ");
        text_escape(out, (Bytes){.data = (const uint8_t *)info->damage.text,
                                 .size = strlen(info->damage.text)});
        text_printf(out, " at offset %" PRIu64, info->damage.offset);
    } else
        text_puts(out, pd_reader_header(info->reader)->unfinished
                           ? "no, its recorder never finished it"
                           : "yes");
    text_putc(out, '\n');
}

static void print_overview(const Info *info, Buffer *out) {
    const PdHeader *header = pd_reader_header(info->reader);
    const Summary *s = &info->summary;

    label(out, "Layout");
    text_printf(out, "%s, %s endian", info_mode_name(header->mode),
                header->big_endian ? "big" : "little");
    if (header->n_files > 1)
        text_printf(out, ", %u files", header->n_files);
    text_putc(out, '\n');
    label(out, "Records");
    text_printf(out, "%" PRIu64 "\n", s->records);
    label(out, "Samples");
    text_printf(out, "%" PRIu64 ", of %" PRIu64 " processes and %" PRIu64 " threads\n", s->samples,
                summary_set_count(&s->pids), summary_set_count(&s->tids));
    label(out, "Time");
    if (s->has_time) {
        text_time_ns(out, s->first_time);
        text_puts(out, " to ");
        text_time_ns(out, s->last_time);
        text_puts(out, ", ");
        text_time_ns(out, s->last_time - s->first_time);
        text_puts(out, " s\n");
    } else
        text_puts(out, "not recorded\n");
    label(out, "Lost");
    text_printf(out, "%" PRIu64 " records, %" PRIu64 " samples", s->lost_events, s->lost_samples);
    if (s->throttled > 0)
        text_printf(out, "; throttled %" PRIu64 " times", s->throttled);
    text_putc(out, '\n');
    print_whole(info, out);
}

static void share_cell(Table *table, uint64_t n, uint64_t all) {
    table_printf(table, "%.1f%%", all > 0 ? 100.0 * (double)n / (double)all : 0.0);
}

static int print_types(const Context *c, const Info *info, Buffer *out) {
    static const Column columns[] = {
        {.name = "TYPE"}, {.name = "RECORDS", .right = true}, {.name = "SHARE", .right = true}, {}};
    _cleanup_(table_freep) Table *table = NULL;
    const Summary *s = &info->summary;
    int r = table_new(c, columns, &table);

    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n_types; i++) {
        const char *name = pd_record_type_name(s->types[i].type);

        if (name)
            table_printf(table, "%s", name);
        else
            table_printf(table, "%" PRIu32, s->types[i].type);
        table_count(table, s->types[i].n);
        share_cell(table, s->types[i].n, s->records);
    }
    text_putc(out, '\n');
    return table_print(table, out);
}

static int print_events(const Context *c, const Info *info, Buffer *out) {
    static const Column columns[] = {{.name = "EVENT", .shrinks = true},
                                     {.name = "SAMPLES", .right = true},
                                     {.name = "SHARE", .right = true},
                                     {.name = "PERIOD", .right = true},
                                     {}};
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
        table_count(table, counted.samples);
        share_cell(table, counted.samples, s->samples);
        table_count(table, counted.period_sum);
    }
    text_putc(out, '\n');
    return table_print(table, out);
}

int info_print_text(const Context *c, const Info *info, Buffer *out) {
    int r;

    print_header(info, out);
    text_putc(out, '\n');
    print_overview(info, out);
    r = print_types(c, info, out);
    if (r >= 0)
        r = print_events(c, info, out);
    return r < 0 ? r : buffer_error(out);
}
