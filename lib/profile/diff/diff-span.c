/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/diff-span.h"

#include "util/clock.h"

/*
 * A window is cut into up to SIGNIFICANCE_SPANS_MAX spans of whole buckets; the first and the last
 * bucket may be cut by the window. Buckets begin with the first sample, so some that have no number
 * lie before it. A span of which little was recorded is joined with the next one, since one sample
 * at the edge of a gap would be a burst in it.
 */

/* The parts of a window before they are joined. */
typedef struct DiffCut {
    const DiffWindow *window;
    uint64_t begin_ns, bucket_ns; /* of the first bucket, which may lie before the window */
} DiffCut;

/* How many buckets lie between the begin of the window and the first sample. */
static uint64_t diff_span_buckets_before(const DiffWindow *window, uint64_t start_ns,
                                         uint64_t bucket_ns) {
    return start_ns > window->from_ns ? (start_ns - window->from_ns + bucket_ns - 1) / bucket_ns
                                      : 0;
}

static uint64_t diff_span_recorded_ns(const DiffWindow *window, uint64_t from_ns, uint64_t to_ns) {
    from_ns = MAX(from_ns, window->from_ns);
    to_ns = MIN(to_ns, window->to_ns);
    if (from_ns >= to_ns)
        return 0;
    return window->coverage ? pd_coverage_recorded_on_any_ns(window->coverage, from_ns, to_ns)
                            : to_ns - from_ns;
}

/* The first bucket of a part: the least one for which diff_span_part() returns it. */
static uint64_t diff_span_first(const DiffSpans *spans, size_t part) {
    return (part * spans->buckets + spans->n_parts - 1) / spans->n_parts;
}

static void diff_spans_join(DiffSpans *spans, const DiffCut *cut) {
    double enough_ns = (double)(spans->buckets * cut->bucket_ns) / (double)spans->n_parts / 2;
    uint64_t recorded_ns[SIGNIFICANCE_SPANS_MAX] = {};

    spans->n = 0;
    for (size_t i = 0; i < spans->n_parts; i++) {
        uint64_t from_ns = cut->begin_ns + diff_span_first(spans, i) * cut->bucket_ns,
                 to_ns = cut->begin_ns + diff_span_first(spans, i + 1) * cut->bucket_ns;

        if (spans->n == 0 || (double)recorded_ns[spans->n - 1] >= enough_ns)
            spans->n++;
        recorded_ns[spans->n - 1] += diff_span_recorded_ns(cut->window, from_ns, to_ns);
        spans->of[i] = (uint8_t)(spans->n - 1);
    }
    if (spans->n > 1 && (double)recorded_ns[spans->n - 1] < enough_ns) {
        spans->n--;
        recorded_ns[spans->n - 1] += recorded_ns[spans->n];
        for (size_t i = 0; i < spans->n_parts; i++)
            spans->of[i] = (uint8_t)MIN(spans->of[i], spans->n - 1);
    }
    for (size_t i = 0; i < spans->n; i++)
        spans->seconds[i] = (double)recorded_ns[i] / NS_PER_SECOND;
}

void diff_spans_make(const Profile *profile, const DiffWindow *asked, DiffSpans *ret) {
    bool is_empty = profile->first_ns > profile->last_ns;
    DiffWindow window = *asked;
    DiffCut cut = {.window = &window, .bucket_ns = profile->bucket_ns};
    uint64_t start_ns = profile->start_ns + profile->real_offset;

    *ret = (DiffSpans){.n = 1, .n_parts = 1, .buckets = 1};
    if (window.to_ns == 0 && !is_empty) {
        window.from_ns = profile->first_ns + profile->real_offset;
        window.to_ns = profile->last_ns + profile->real_offset + 1;
    }
    ret->all_seconds = ret->seconds[0] =
        (double)diff_span_recorded_ns(&window, 0, UINT64_MAX) / NS_PER_SECOND;
    if (is_empty || window.to_ns <= start_ns || !(profile->keys & profile_key_bit(PROFILE_TIME)))
        return;
    ret->before = diff_span_buckets_before(&window, start_ns, cut.bucket_ns);
    ret->buckets = ret->before + (window.to_ns - start_ns + cut.bucket_ns - 1) / cut.bucket_ns;
    ret->n_parts = (size_t)MIN(ret->buckets, (uint64_t)SIGNIFICANCE_SPANS_MAX);
    cut.begin_ns = start_ns - ret->before * cut.bucket_ns;
    diff_spans_join(ret, &cut);
}
