/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The spans of time in which a side of a comparison is looked at. */

#include "perfdata/feature/coverage.h"
#include "profile/diff/significance.h"
#include "profile/profile.h"

/* CLOCK_REALTIME, or the profile's time where the difference between them is not known. */
typedef struct DiffWindow {
    uint64_t from_ns, to_ns;    /* 0, 0: from the first sample to the last */
    const PdCoverage *coverage; /* NULL: no gap is known */
} DiffWindow;

typedef struct DiffSpans {
    size_t n;                               /* at least 1 */
    double seconds[SIGNIFICANCE_SPANS_MAX]; /* how much of each span was recorded */
    double all_seconds;                     /* the sum of them */
    uint64_t before, buckets;               /* buckets before the first sample's, and all */
    size_t n_parts;                         /* of the window; `of` has the span of each part */
    uint8_t of[SIGNIFICANCE_SPANS_MAX];
} DiffSpans;

void diff_spans_make(const Profile *profile, const DiffWindow *window, DiffSpans *ret);

/* The span of a bucket of PROFILE_TIME. */
static inline size_t diff_span_of(const DiffSpans *spans, uint32_t bucket) {
    uint64_t at = spans->before + bucket;

    return at < spans->buckets ? spans->of[at * spans->n_parts / spans->buckets] : 0;
}
