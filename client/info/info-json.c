/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/info/info-state.h"

#include <inttypes.h>
#include <stdio.h>

#include "client/file/recording.h"

/*
 * `info --json`: one object. Its top level has what scripts need, with flat names and plain units;
 * the complete header features are repeated in `environment`. The manual page documents each
 * member.
 */

static void info_json_print_count(uint32_t type, uint64_t n, void *arg) {
    char name[16];

    snprintf(name, sizeof(name), "%" PRIu32, type);
    fields_u64(arg, name, n);
}

static void info_json_print_records(const Info *info, Fields *f) {
    const Summary *s = &info->summary;

    fields_u64(f, "n_records", s->records);
    fields_begin_object(f, "records");
    for (size_t i = 0; i < s->n_types; i++)
        info_json_print_count(s->types[i].type, s->types[i].n, f);
    fields_end_object(f);
    fields_begin_object(f, "records_on_disk");
    pd_reader_each_on_disk(info->reader, info_json_print_count, f);
    fields_end_object(f);
    fields_u64(f, "n_samples", s->samples);
    fields_u64(f, "unmatched_samples", s->unmatched_samples);
}

static void info_json_print_container(const Info *info, Fields *f) {
    const PdHeader *header = pd_reader_header(info->reader);
    bool damaged = info->damage.text[0];

    fields_str(f, "file", recording_name(info->path));
    fields_str(f, "mode", recording_mode_name(header->mode));
    fields_u64(f, "magic_version", header->magic_version);
    fields_str(f, "byte_order", header->big_endian ? "big" : "little");
    fields_u64(f, "header_attr_size", header->attr_size);
    fields_u64(f, "n_files", header->n_files);
    fields_bool(f, "unfinished", header->unfinished);
    fields_bool(f, "complete", !damaged && !header->unfinished);
    if (!damaged) {
        fields_null(f, "damage");
        return;
    }
    fields_begin_object(f, "damage");
    fields_str(f, "text", info->damage.text);
    fields_u64(f, "offset", info->damage.offset);
    fields_u64(f, "file", info->damage.file);
    fields_end_object(f);
}

static void info_json_print_features(const PdReader *reader, Fields *f) {
    char number[16];

    if (pd_reader_header(reader)->unfinished) {
        fields_null(f, "features");
        return;
    }
    fields_begin_array(f, "features");
    for (unsigned bit = 1; bit < PD_FEATURE_BITS; bit++) {
        const char *name = pd_feature_name(bit);

        snprintf(number, sizeof(number), "%u", bit);
        if (pd_reader_has_feature(reader, bit))
            fields_str(f, NULL, name ? name : number);
    }
    fields_end_array(f);
}

/* The most important facts about the host, at the top level. */
static void info_json_print_host(const PdEnvironment *e, Fields *f) {
    static const unsigned bits[] = {PD_FEATURE_HOSTNAME, PD_FEATURE_OSRELEASE, PD_FEATURE_VERSION,
                                    PD_FEATURE_ARCH,     PD_FEATURE_CPUDESC,   PD_FEATURE_CPUID,
                                    PD_FEATURE_NRCPUS,   PD_FEATURE_TOTAL_MEM, PD_FEATURE_CMDLINE};

    for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
        pd_environment_describe_feature(e, bits[i], f);
}

static void info_json_print_event(const PdEvent *event, const SummaryEvent *counted, Fields *f) {
    fields_u64(f, "index", event->index);
    fields_str(f, "name", event->name);
    fields_u64(f, "type", event->attr.type);
    fields_u64(f, "config", event->attr.config);
    fields_u64(f, "attr_size", event->attr.size);
    fields_u64(f, "sample_type", event->attr.sample_type);
    fields_u64(f, "n_ids", event->n_ids);
    fields_u64(f, "samples", counted->samples);
    fields_u64(f, "period_sum", counted->period_sum);
    fields_bool(f, "period_in_sample", event->attr.sample_type & PD_SAMPLE_PERIOD);
}

static void info_json_print_events(const Info *info, Fields *f) {
    const PdEvents *events = pd_reader_events(info->reader);
    static const SummaryEvent none;
    size_t n = pd_events_count(events);

    fields_u64(f, "n_events", n);
    for (size_t i = fields_begin_list(f, "events"); fields_next(f, i, n); i++)
        info_json_print_event(pd_events_at(events, i),
                              i < info->summary.n_events ? &info->summary.events[i] : &none, f);
}

static void info_json_print_time(Fields *f, const char *name, bool known, uint64_t time) {
    if (known)
        fields_time_ns(f, name, time);
    else
        fields_null(f, name);
}

static void info_json_print_shares(Fields *f, const char *name, const Share *shares, int n,
                                   bool dsos) {
    fields_begin_array(f, name);
    for (int i = 0; i < n; i++) {
        fields_begin_array(f, NULL);
        fields_bytes(f, NULL, shares[i].comm);
        if (dsos)
            fields_bytes(f, NULL, shares[i].dso);
        fields_u64(f, NULL, shares[i].samples);
        fields_end_array(f);
    }
    fields_end_array(f);
}

static int info_json_print_top(const Info *info, Fields *f) {
    Share shares[INFO_TOP];
    int n = attribution_top_comms(info->attribution, shares, INFO_TOP);

    if (n < 0)
        return n;
    info_json_print_shares(f, "comm_top10", shares, n, false);
    n = attribution_top_dsos(info->attribution, shares, INFO_TOP);
    if (n < 0)
        return n;
    info_json_print_shares(f, "comm_dso_top10", shares, n, true);
    return 0;
}

int info_print_json(const Info *info, Fields *f) {
    const Summary *s = &info->summary;
    int r;

    fields_begin_object(f, NULL);
    info_json_print_container(info, f);
    info_json_print_records(info, f);
    info_json_print_features(info->reader, f);
    info_json_print_host(info->environment, f);
    fields_u64(f, "n_build_ids", info_build_ids(info));
    if (info_unidentified(info) > 0)
        fields_u64(f, "n_unidentified", info_unidentified(info));
    if (info->has_stacks)
        info_stacks_describe(&info->stacks, f);
    info_json_print_events(info, f);
    info_json_print_time(f, "first_sample_time", s->has_time, s->first_time);
    info_json_print_time(f, "last_sample_time", s->has_time, s->last_time);
    fields_u64(f, "distinct_sample_pids", s->pids.index.n);
    fields_u64(f, "distinct_sample_tids", s->tids.index.n);
    fields_u64(f, "auxtrace_bytes", s->auxtrace_bytes);
    fields_u64(f, "lost_events", s->lost_events);
    fields_u64(f, "lost_samples", s->lost_samples);
    fields_u64(f, "throttled", s->throttled);
    r = info_json_print_top(info, f);
    if (r < 0)
        return r;
    fields_begin_object(f, "environment");
    pd_environment_describe(info->environment, f);
    fields_end_object(f);
    fields_end_object(f);
    return 0;
}
