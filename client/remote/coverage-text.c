/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/remote/coverage-text.h"

#include <inttypes.h>
#include <time.h>

#include "client/frame/figure.h"
#include "client/remote/reply.h"
#include "util/clock.h"
#include "util/macro.h"
#include "util/text.h"

/*
 * One sentence about what was recorded of a window: first how much, then each missing span with its
 * reason. What one CPU missed is named, and no time that the others missed too. Times of today have
 * no date and no zone, except in pages, which others open elsewhere.
 */

enum { GAPS_SHOWN = 8 };

/* Below this, whole seconds might not distinguish begin and end. */
#define SHORT_US (2 * US_PER_SECOND)

static bool coverage_text_same_day(uint64_t a_us, uint64_t b_us) {
    time_t a = (time_t)(a_us / US_PER_SECOND), b = (time_t)(b_us / US_PER_SECOND);
    struct tm x, y;

    return localtime_r(&a, &x) && localtime_r(&b, &y) && x.tm_year == y.tm_year &&
           x.tm_yday == y.tm_yday;
}

static void coverage_text_put_moment(Buffer *out, uint64_t us, bool with_day, bool with_ms) {
    time_t seconds = (time_t)(us / US_PER_SECOND);
    char text[40];
    struct tm tm;

    if (!with_day && localtime_r(&seconds, &tm) &&
        strftime(text, sizeof(text), "%H:%M:%S", &tm) > 0)
        text_puts(out, text);
    else
        figure_moment_short(out, us);
    if (with_ms)
        text_printf(out, ".%03u", (unsigned)(us % US_PER_SECOND / US_PER_MS));
}

static void coverage_text_put_zone(Buffer *out, uint64_t us) {
    time_t seconds = (time_t)(us / US_PER_SECOND);
    char text[40];
    struct tm tm;

    if (localtime_r(&seconds, &tm) && strftime(text, sizeof(text), " %Z", &tm) > 0)
        text_escape_str(out, text);
}

static void coverage_text_put_times(Buffer *out, uint64_t since_us, uint64_t until_us,
                                    bool for_page) {
    bool with_ms = until_us > since_us && until_us - since_us < SHORT_US;

    coverage_text_put_moment(
        out, since_us, for_page || !coverage_text_same_day(since_us, figure_now_us()), with_ms);
    if (for_page && figure_zone_min(since_us) != figure_zone_min(until_us))
        coverage_text_put_zone(out, since_us);
    text_puts(out, " to ");
    coverage_text_put_moment(out, until_us, !coverage_text_same_day(since_us, until_us), with_ms);
    if (for_page)
        coverage_text_put_zone(out, until_us);
}

void coverage_times(Buffer *out, uint64_t since_us, uint64_t until_us) {
    coverage_text_put_times(out, since_us, until_us, false);
}

void coverage_times_for_page(Buffer *out, uint64_t since_us, uint64_t until_us) {
    coverage_text_put_times(out, since_us, until_us, true);
}

static void coverage_text_put_gap(Buffer *out, const PdGap *gap, bool for_page) {
    coverage_text_put_times(out, gap->from_ns / NS_PER_US, gap->to_ns / NS_PER_US, for_page);
    if (gap->cpu != PD_ALL_CPUS)
        text_printf(out, " on CPU %" PRIu32, gap->cpu);
    text_printf(out, " (%s)", pd_gap_reason_text(gap->reason));
}

void coverage_describe_gap(Buffer *out, const PdGap *gap) {
    coverage_text_put_gap(out, gap, false);
}

static bool coverage_text_put_gaps(Buffer *out, const PdCoverage *coverage, size_t n,
                                   bool for_page) {
    size_t n_counting = 0, skip, shown = 0;

    for (size_t i = 0; i < coverage->n_gaps; i++)
        n_counting += pd_gap_counts(&coverage->gaps[i]);
    skip = n_counting > n ? n_counting - n : 0;
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        if (!pd_gap_counts(&coverage->gaps[i]) || skip > 0) {
            skip -= pd_gap_counts(&coverage->gaps[i]);
            continue;
        }
        if (shown++ > 0)
            text_puts(out, ", ");
        coverage_text_put_gap(out, &coverage->gaps[i], for_page);
    }
    if (n_counting > n)
        text_printf(out, " and %zu times before", n_counting - n);
    return n_counting > 0;
}

bool coverage_put_gaps(Buffer *out, const PdCoverage *coverage, size_t n) {
    return coverage_text_put_gaps(out, coverage, n, false);
}

/* Both figures may print the same if little is missing. */
static void coverage_text_put_part(Buffer *out, uint64_t recorded_us, uint64_t span_us) {
    _cleanup_(buffer_done) Buffer recorded = {}, span = {};

    figure_span_tenths(&recorded, recorded_us);
    figure_span_tenths(&span, span_us);
    if (bytes_equal(buffer_bytes(&recorded), buffer_bytes(&span))) {
        text_puts(out, "all but ");
        figure_span(out, span_us - recorded_us);
    } else {
        buffer_append(out, recorded.data, recorded.size);
    }
    text_puts(out, " of ");
    buffer_append(out, span.data, span.size);
}

static void coverage_text_describe(Buffer *out, const PdCoverage *coverage, bool for_page) {
    uint64_t span_ns = coverage->to_ns - coverage->from_ns,
             recorded_ns =
                 pd_coverage_recorded_on_any_ns(coverage, coverage->from_ns, coverage->to_ns);

    if (pd_coverage_is_whole(coverage)) {
        text_puts(out, "no gaps");
        return;
    }
    if (recorded_ns < span_ns) {
        coverage_text_put_part(out, recorded_ns / NS_PER_US, span_ns / NS_PER_US);
        text_puts(out, ", ");
    }
    text_puts(out, "not recorded ");
    (void)coverage_text_put_gaps(out, coverage, GAPS_SHOWN, for_page);
}

void coverage_describe(Buffer *out, const PdCoverage *coverage) {
    coverage_text_describe(out, coverage, false);
}

void coverage_describe_for_page(Buffer *out, const PdCoverage *coverage) {
    coverage_text_describe(out, coverage, true);
}

static void coverage_text_take_gap(const json_t *json, PdCoverage *coverage) {
    PdGap gap = {.from_ns = reply_count(json, "sinceUsec") * NS_PER_US,
                 .to_ns = reply_count(json, "untilUsec") * NS_PER_US,
                 .cpu = reply_has(json, "cpu") ? (uint32_t)reply_count(json, "cpu") : PD_ALL_CPUS,
                 .reason = PD_GAP_UNKNOWN};

    (void)pd_gap_reason_from_name(reply_string(json, "reason"), &gap.reason);
    (void)pd_coverage_add_gap(coverage, &gap);
}

bool coverage_of_reply(const json_t *object, PdCoverage *ret) {
    const json_t *json = reply_member(object, "coverage"), *gap;
    size_t i;

    *ret = (PdCoverage){};
    if (!json_is_object(json))
        return false;
    ret->from_ns = reply_count(json, "sinceUsec") * NS_PER_US;
    ret->to_ns = MAX(ret->from_ns, reply_count(json, "untilUsec") * NS_PER_US);
    json_array_foreach(reply_member(json, "gaps"), i, gap) coverage_text_take_gap(gap, ret);
    return true;
}
