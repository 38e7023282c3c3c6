/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/diff-span.h"

/*
 * A window has up to SIGNIFICANCE_SPANS_MAX spans of whole buckets. The first and the last bucket
 * may be cut by the window, and what was not recorded is taken off all of them alike.
 */

static const double ns_per_second = 1e9;

/* The part of a bucket that lies in the window. */
static double diff_span_seconds(const Profile *profile, uint32_t bucket, uint64_t from_ns,
                                uint64_t to_ns) {
    uint64_t begin = profile->start_ns + (uint64_t)bucket * profile->bucket_ns,
             end = begin + profile->bucket_ns;

    begin = MAX(begin, from_ns);
    end = MIN(end, to_ns);
    return end > begin ? (double)(end - begin) / ns_per_second : 0;
}

static uint32_t diff_span_buckets(const Profile *profile, uint64_t to_ns) {
    uint64_t n;

    if (!(profile->keys & profile_key_bit(PROFILE_TIME)) || to_ns <= profile->start_ns)
        return 1;
    n = (to_ns - profile->start_ns + profile->bucket_ns - 1) / profile->bucket_ns;
    return (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
}

void diff_spans_make(const Profile *profile, uint64_t from_ns, uint64_t to_ns, uint64_t covered_ns,
                     DiffSpans *ret) {
    bool is_empty = profile->first_ns > profile->last_ns;
    double scale = 1;

    *ret = (DiffSpans){.n = 1, .buckets = 1};
    if (to_ns == 0 && !is_empty) {
        from_ns = profile->first_ns;
        to_ns = profile->last_ns + 1;
    }
    if (to_ns > from_ns && covered_ns > 0)
        scale = MIN((double)covered_ns / (double)(to_ns - from_ns), 1.0);
    ret->all_seconds = to_ns > from_ns ? (double)(to_ns - from_ns) / ns_per_second * scale : 0;
    ret->seconds[0] = ret->all_seconds;
    if (is_empty)
        return;
    ret->buckets = diff_span_buckets(profile, to_ns);
    ret->n = MIN((size_t)ret->buckets, (size_t)SIGNIFICANCE_SPANS_MAX);
    if (ret->n == 1)
        return;
    ret->seconds[0] = 0;
    for (uint32_t i = 0; i < ret->buckets; i++)
        ret->seconds[diff_span_of(ret, i)] += scale * diff_span_seconds(profile, i, from_ns, to_ns);
}
