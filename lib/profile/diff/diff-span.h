/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The spans of time in which a side of a comparison is looked at. */

#include "profile/diff/significance.h"
#include "profile/profile.h"

typedef struct DiffSpans {
    size_t n;         /* at least 1 */
    uint32_t buckets; /* of the profile */
    double seconds[SIGNIFICANCE_SPANS_MAX], all_seconds;
} DiffSpans;

/* Of the window from_ns to to_ns (0, 0: from the first sample to the last), of which covered_ns
 * were recorded (0: all). */
void diff_spans_make(const Profile *profile, uint64_t from_ns, uint64_t to_ns, uint64_t covered_ns,
                     DiffSpans *ret);

/* The span of a bucket of PROFILE_TIME. */
static inline size_t diff_span_of(const DiffSpans *spans, uint32_t bucket) {
    return bucket < spans->buckets ? (size_t)((uint64_t)bucket * spans->n / spans->buckets) : 0;
}
