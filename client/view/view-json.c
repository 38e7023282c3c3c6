/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/view/view.h"
#include "util/clock.h"

/*
 * What the JSON of all views has in common: whether the window is complete, and which parts of it
 * were not recorded.
 */

static void view_json_gap(Fields *f, const PdGap *gap) {
    fields_u64(f, "sinceUsec", gap->from_ns / NS_PER_US);
    fields_u64(f, "untilUsec", gap->to_ns / NS_PER_US);
    if (gap->cpu == PD_ALL_CPUS)
        fields_null(f, "cpu");
    else
        fields_u64(f, "cpu", gap->cpu);
    fields_str(f, "reason", pd_gap_reason_name(gap->reason));
}

void view_put_completeness(const View *view, Fields *f) {
    const PdCoverage *coverage = &view->coverage;

    if (view->is_partial || view->coverage_known)
        fields_bool(f, "complete", !view->is_partial);
    else
        fields_null(f, "complete");
    if (!view->coverage_known) {
        fields_null(f, "gaps");
        return;
    }
    for (size_t i = fields_begin_list(f, "gaps"); fields_next(f, i, coverage->n_gaps); i++)
        view_json_gap(f, &coverage->gaps[i]);
}
