/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/environment-feature.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "util/clock.h"
#include "util/text.h"

/*
 * PROFD_COVERAGE, profd's own feature: the time span that the recording claims to cover, its CPUs,
 * and its gaps, in wall-clock time. perf ignores features with unknown numbers.
 *
 * u32 version (1), u32 n_words, u64 from, u64 to, u64 cpus[n_words], u32 n_gaps, then for each gap
 * u64 from, u64 to, u32 cpu (all: 2^32 - 1), u32 reason.
 */

enum { VERSION = 1, GAP_BYTES = 24 };

static uint32_t feature_coverage_count_words(const PdCoverage *coverage) {
    uint32_t n = PD_COVERAGE_WORDS_MAX;

    while (n > 0 && coverage->cpus[n - 1] == 0)
        n--;
    return n;
}

static void feature_coverage_code_gap(Codec *c, PdGap *gap) {
    uint32_t reason = gap->reason;

    codec_u64(c, &gap->from_ns);
    codec_u64(c, &gap->to_ns);
    codec_u32(c, &gap->cpu);
    codec_u32(c, &reason);
    if (c->mode != CODEC_READ)
        return;
    /* A later version may have more reasons. */
    gap->reason = reason < PD_GAP_REASONS ? (PdGapReason)reason : PD_GAP_UNKNOWN;
    if (gap->from_ns > gap->to_ns)
        codec_fail(c, -EBADMSG);
}

void code_coverage(Codec *c, PdEnvironment *env) {
    PdCoverage *coverage = &env->coverage;
    uint32_t n_words = c->mode == CODEC_WRITE ? feature_coverage_count_words(coverage) : 0;

    codec_u32_is(c, VERSION);
    codec_u32(c, &n_words);
    codec_u64(c, &coverage->from_ns);
    codec_u64(c, &coverage->to_ns);
    if (c->mode == CODEC_READ &&
        (n_words > PD_COVERAGE_WORDS_MAX || coverage->from_ns > coverage->to_ns))
        codec_fail(c, -EBADMSG);
    for (uint32_t i = 0; i < MIN(n_words, (uint32_t)PD_COVERAGE_WORDS_MAX); i++)
        codec_u64(c, &coverage->cpus[i]);
    codec_count_u32(c, &coverage->n_gaps);
    if (c->mode == CODEC_READ && coverage->n_gaps > PD_GAPS_MAX)
        codec_fail(c, -EBADMSG);
    for (size_t i = codec_begin(c, &coverage->n_gaps, &coverage->gaps, GAP_BYTES);
         codec_next(c, i, &coverage->n_gaps, &coverage->gaps); i++)
        feature_coverage_code_gap(c, &coverage->gaps[i]);
    if (c->mode == CODEC_CLEAR)
        *coverage = (PdCoverage){};
}

static void feature_coverage_print_moment(Buffer *out, uint64_t ns) {
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    char text[64] = "?";
    struct tm tm;

    if (localtime_r(&seconds, &tm))
        (void)strftime(text, sizeof(text), "%F %T", &tm);
    text_printf(out, "%s.%06" PRIu64, text, ns % NS_PER_SECOND / NS_PER_US);
}

static void feature_coverage_print_span(Buffer *out, const char *label, uint64_t from_ns,
                                        uint64_t to_ns) {
    text_printf(out, "# %s : ", label);
    feature_coverage_print_moment(out, from_ns);
    text_puts(out, " to ");
    feature_coverage_print_moment(out, to_ns);
}

void print_coverage(const PdEnvironment *env, Buffer *out) {
    const PdCoverage *coverage = &env->coverage;

    feature_coverage_print_span(out, "recorded", coverage->from_ns, coverage->to_ns);
    text_putc(out, '\n');
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        const PdGap *gap = &coverage->gaps[i];

        feature_coverage_print_span(out, "not recorded", gap->from_ns, gap->to_ns);
        if (gap->cpu != PD_ALL_CPUS)
            text_printf(out, ", CPU %" PRIu32, gap->cpu);
        text_printf(out, " (%s)\n", pd_gap_reason_text(gap->reason));
    }
}

void describe_coverage(const PdEnvironment *env, Fields *fields) {
    const PdCoverage *coverage = &env->coverage;

    fields_begin_object(fields, "coverage");
    fields_time_ns(fields, "since", coverage->from_ns);
    fields_time_ns(fields, "until", coverage->to_ns);
    fields_time_ns(fields, "recorded", pd_coverage_recorded_ns(coverage));
    fields_bool(fields, "complete", pd_coverage_is_whole(coverage));
    fields_begin_array(fields, "cpus");
    for (uint32_t cpu = 0; cpu < PD_COVERAGE_CPUS_MAX; cpu++)
        if (pd_coverage_has_cpu(coverage, cpu))
            fields_u64(fields, NULL, cpu);
    fields_end_array(fields);
    for (size_t i = fields_begin_list(fields, "gaps"); fields_next(fields, i, coverage->n_gaps);
         i++) {
        const PdGap *gap = &coverage->gaps[i];

        fields_time_ns(fields, "since", gap->from_ns);
        fields_time_ns(fields, "until", gap->to_ns);
        fields_str(fields, "reason", pd_gap_reason_name(gap->reason));
        if (gap->cpu != PD_ALL_CPUS)
            fields_u64(fields, "cpu", gap->cpu);
    }
    fields_end_object(fields);
}
