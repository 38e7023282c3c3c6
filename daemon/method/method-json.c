/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "method/method-private.h"
#include "protocol/value.h"

/* JSON that several methods return: the files of a segment or snapshot, its coverage and its gaps.
 */

json_t *method_files_json(Layout layout, size_t n) {
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        char name[16];

        layout_file_name(layout, i, name);
        value_append(&list, json_string(name));
    }
    return list;
}

json_t *gap_json(const PdGap *gap) {
    if (gap->to_ns == 0)
        return json_null();
    return json_pack("{s:o, s:o, s:s, s:o}", "sinceUsec", answer_count(gap->from_ns / 1000),
                     "untilUsec", answer_count(gap->to_ns / 1000), "reason",
                     pd_gap_reason_name(gap->reason), "cpu",
                     gap->cpu == PD_ALL_CPUS ? json_null() : answer_count(gap->cpu));
}

json_t *coverage_json(const StoreCoverage *coverage) {
    json_t *list;
    bool complete = true;

    if (!coverage->is_known)
        return json_null();
    list = json_array();
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        complete &= !pd_gap_counts(&coverage->gaps[i]);
        value_append(&list, gap_json(&coverage->gaps[i]));
    }
    return json_pack(
        "{s:o, s:o, s:o, s:b, s:o}", "sinceUsec", answer_count(coverage->since_ns / 1000),
        "untilUsec", answer_count(coverage->until_ns / 1000), "recordedUsec",
        answer_count(coverage->recorded_ns / 1000), "complete", complete, "gaps", list);
}
