/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/diff-span.h"

#include <math.h>

#include "test.h"
#include "util/clock.h"

/* Windows of five minutes, in seconds of the wall clock, which is 1000 s ahead of the profile's. */

#define S NS_PER_SECOND

enum { WINDOW = 300, BUCKET = 5 /* 60 of them */ };

static Profile profile_from(uint64_t first, uint64_t last) {
    return (Profile){.keys = profile_key_bit(PROFILE_TIME),
                     .first_ns = first * S,
                     .last_ns = last * S,
                     .start_ns = first * S - first * S % (BUCKET * S),
                     .bucket_ns = BUCKET * S,
                     .real_offset = 1000 * S,
                     .real_known = true};
}

static DiffSpans spans_of(const Profile *profile, PdGap *gap) {
    PdCoverage coverage = {
        .from_ns = 1000 * S, .to_ns = (1000 + WINDOW) * S, .gaps = gap, .n_gaps = gap ? 1 : 0};
    const DiffWindow window = {
        .from_ns = coverage.from_ns, .to_ns = coverage.to_ns, .coverage = gap ? &coverage : NULL};
    DiffSpans spans;

    diff_spans_make(profile, &window, &spans);
    return spans;
}

static bool sum_is(const DiffSpans *spans, double seconds) {
    double sum = 0;

    for (size_t i = 0; i < spans->n; i++)
        sum += spans->seconds[i];
    return fabs(sum - seconds) < 1e-6 && fabs(spans->all_seconds - seconds) < 1e-6;
}

/* Steady load of so many samples a second, from the first sample to the end of the window. */
static SignificanceSeries load(const Profile *profile, const DiffSpans *spans, double rate) {
    SignificanceSeries series = {.n = spans->n};
    uint64_t n = (1000 + WINDOW) - (profile->start_ns + profile->real_offset) / S;

    for (uint64_t second = 0; second < n; second++)
        series.counts[diff_span_of(spans, (uint32_t)(second / BUCKET))] += rate;
    memcpy(series.norms, spans->seconds, sizeof(series.norms));
    return series;
}

static double p_of(const Profile *before, PdGap *gap, double before_rate, double after_rate) {
    Profile after = profile_from(1, WINDOW - 1);
    DiffSpans a = spans_of(before, gap), b = spans_of(&after, NULL);
    SignificanceSeries x = load(before, &a, before_rate), y = load(&after, &b, after_rate);

    return significance_compare(&x, &y, false).p;
}

TEST(spans_add_up_to_the_window) {
    Profile whole = profile_from(1, WINDOW - 1), early = profile_from(1, 20);
    DiffSpans spans = spans_of(&whole, NULL);

    CHECK_EQ(spans.n, 60);
    CHECK(sum_is(&spans, WINDOW));
    for (size_t i = 0; i < spans.n; i++)
        CHECK_EQ(diff_span_of(&spans, (uint32_t)i), i);
    spans = spans_of(&early, NULL);
    CHECK(sum_is(&spans, WINDOW));
}

TEST(time_before_the_first_sample_counts) {
    Profile late = profile_from(240, WINDOW - 1);
    DiffSpans spans = spans_of(&late, NULL);

    CHECK(sum_is(&spans, WINDOW));
    CHECK_EQ(diff_span_of(&spans, 0), 48);
    CHECK(p_of(&late, NULL, 20, 20) < 0.02);
}

/* profd was started in the middle of the window. */
TEST(a_gap_at_the_start_changes_no_rate) {
    Profile late = profile_from(180, WINDOW - 1);
    PdGap gap = {.to_ns = 1180 * S, .cpu = PD_ALL_CPUS, .reason = PD_GAP_NOT_STARTED};
    DiffSpans spans = spans_of(&late, &gap);

    CHECK(sum_is(&spans, 120));
    CHECK(p_of(&late, &gap, 20, 20) > 0.9);
    CHECK(p_of(&late, &gap, 20, 50) < 1e-6);
}

/* All but the first microsecond of a span lies in the gap. */
TEST(a_gap_in_the_middle_makes_no_burst) {
    Profile profile = profile_from(1, WINDOW - 1);
    PdGap gap = {
        .from_ns = 1100 * S + 1000, .to_ns = 1140 * S, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED};
    DiffSpans spans = spans_of(&profile, &gap);

    CHECK(sum_is(&spans, WINDOW - 40 + 1e-6));
    CHECK_EQ(spans.n, 52);
    for (size_t i = 0; i < spans.n; i++)
        CHECK(spans.seconds[i] > BUCKET / 2.0);
    CHECK_EQ(diff_span_of(&spans, 19), 19);
    CHECK_EQ(diff_span_of(&spans, 20), 20);
    CHECK_EQ(diff_span_of(&spans, 28), 20);
    CHECK_EQ(diff_span_of(&spans, 59), 51);
}

TEST(a_gap_at_the_end_is_joined_with_what_is_before) {
    Profile profile = profile_from(1, 240);
    PdGap gap = {
        .from_ns = 1241 * S, .to_ns = PD_GAP_OPEN, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED};
    DiffSpans spans = spans_of(&profile, &gap);

    CHECK(sum_is(&spans, 241));
    CHECK_EQ(diff_span_of(&spans, 59), spans.n - 1);
    CHECK(spans.seconds[spans.n - 1] >= BUCKET / 2.0);
}

TEST(a_gap_of_one_cpu_is_none_of_the_others) {
    Profile profile = profile_from(1, WINDOW - 1);
    PdGap gap = {.from_ns = 1100 * S, .to_ns = 1160 * S, .cpu = 3, .reason = PD_GAP_LOST};
    DiffSpans spans = spans_of(&profile, &gap);

    CHECK(sum_is(&spans, WINDOW));
}

TEST(without_times_there_is_one_span) {
    Profile whole = profile_from(1, 101), empty = profile_from(1, 0);
    const DiffWindow none = {};
    DiffSpans spans;

    whole.keys = 0;
    diff_spans_make(&whole, &none, &spans);
    CHECK_EQ(spans.n, 1);
    CHECK(sum_is(&spans, 100));
    CHECK_EQ(diff_span_of(&spans, PROFILE_NONE), 0);
    diff_spans_make(&empty, &none, &spans);
    CHECK(sum_is(&spans, 0));
    spans = spans_of(&empty, NULL);
    CHECK(sum_is(&spans, WINDOW));
}

TEST_MAIN()
