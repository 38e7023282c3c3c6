/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The spans of time in which a side of a comparison is looked at. */

#include "profile/diff/profile-diff.h"
#include "profile/diff/significance.h"

typedef struct DiffSpans {
    size_t n;         /* at least 1 */
    uint32_t buckets; /* of the profile */
    double seconds[SIGNIFICANCE_SPANS_MAX], all_seconds;
} DiffSpans;

void diff_spans_make(const DiffSide *side, DiffSpans *ret);

/* The span of a bucket of PROFILE_TIME. */
static inline size_t diff_span_of(const DiffSpans *spans, uint32_t bucket) {
    return bucket < spans->buckets ? (size_t)((uint64_t)bucket * spans->n / spans->buckets) : 0;
}
