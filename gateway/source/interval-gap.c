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

int interval_gaps_take(IntervalGaps *gaps, uint64_t since_ns, uint64_t until_ns,
                       uint64_t *ret_missing_ns) {
    PdCoverage *coverage = &gaps->coverage, interval;
    size_t kept = 0;
    int r = pd_coverage_copy(coverage, &interval);

    if (r < 0)
        return r;
    interval.from_ns = since_ns;
    interval.to_ns = until_ns;
    pd_coverage_clip(&interval);
    *ret_missing_ns = until_ns - since_ns - pd_coverage_recorded_ns(&interval);
    pd_coverage_done(&interval);
    for (size_t i = 0; i < coverage->n_gaps; i++)
        if (coverage->gaps[i].to_ns > until_ns)
            coverage->gaps[kept++] = coverage->gaps[i];
    coverage->n_gaps = kept;
    return 0;
}
