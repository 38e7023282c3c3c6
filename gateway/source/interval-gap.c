/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source/interval-gap.h"

/*
 * A gap may lie in several intervals; a gap that has not ended lies in all that follow. A CPU that
 * was offline is no gap. Gaps of single CPUs count like those of all CPUs: the time was not
 * recorded as a whole.
 */

void interval_gaps_done(IntervalGaps *gaps) {
    pd_coverage_done(&gaps->coverage);
}

int interval_gaps_add(IntervalGaps *gaps, const PdStreamMark *mark) {
    PdGap gap = mark->gap;

    if (!pd_gap_counts(&gap))
        return 0;
    gap.from_ns += mark->real_offset;
    if (gap.to_ns != PD_GAP_OPEN)
        gap.to_ns += mark->real_offset;
    return pd_coverage_add_gap(&gaps->coverage, &gap);
}

/* How much of a span lies in gaps, or in those of one reason. */
static int interval_gaps_measure(const PdCoverage *coverage, PdCoverage *interval,
                                 const PdGapReason *only, uint64_t *ret_ns) {
    uint64_t from_ns = interval->from_ns, to_ns = interval->to_ns;
    int r = 0;

    for (size_t i = 0; r == 0 && i < coverage->n_gaps; i++)
        if (!only || coverage->gaps[i].reason == *only)
            r = pd_coverage_add_gap(interval, &coverage->gaps[i]);
    if (r == 0) {
        pd_coverage_clip(interval);
        *ret_ns = to_ns - from_ns - pd_coverage_recorded_ns(interval);
    }
    pd_coverage_done(interval);
    return r;
}

int interval_gaps_take(IntervalGaps *gaps, uint64_t since_ns, uint64_t until_ns,
                       IntervalMissing *ret) {
    static const PdGapReason deleted = PD_GAP_DELETED;
    PdCoverage *coverage = &gaps->coverage;
    PdCoverage all = {.from_ns = since_ns, .to_ns = until_ns}, some = all;
    IntervalMissing missing;
    size_t kept = 0;
    int r = interval_gaps_measure(coverage, &all, NULL, &missing.all_ns);

    if (r == 0)
        r = interval_gaps_measure(coverage, &some, &deleted, &missing.deleted_ns);
    if (r < 0)
        return r;
    for (size_t i = 0; i < coverage->n_gaps; i++)
        if (coverage->gaps[i].to_ns > until_ns)
            coverage->gaps[kept++] = coverage->gaps[i];
    coverage->n_gaps = kept;
    *ret = missing;
    return 0;
}
