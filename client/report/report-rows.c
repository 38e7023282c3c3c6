/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/frame/figure.h"
#include "client/report/report.h"
#include "util/clock.h"
#include "util/text.h"

/* The rows and trees of a report, their shares, and the text of their values. */

int report_no_memory(void) {
    return complain(STATUS_FAILED, "Failed to make the report: %s.", strerror(ENOMEM));
}

int report_rows(const Report *report, uint32_t event, RowTable **ret) {
    _cleanup_(row_table_freep) RowTable *table = NULL;
    const View *view = report->view;

    if (row_table_new(view->profile, view->names, &report->keys, event, &table) < 0 ||
        row_table_sort(table, report->sort, report->by_period) < 0)
        return report_no_memory();
    *ret = TAKE_PTR(table);
    return STATUS_OK;
}

double report_share(const Report *report, const RowTable *table, uint64_t weight) {
    uint64_t all = report_weight(report, table->samples, table->period);

    return all == 0 ? 0 : 100.0 * (double)weight / (double)all;
}

bool report_is_shown(const Report *report, const RowTable *table, uint64_t weight) {
    return report_share(report, table, weight) * (double)REPORT_PERCENT >= (double)report->limit;
}

uint64_t report_time_us(const RowTable *table, const ProfileRow *row) {
    const Profile *p = table->profile;
    uint64_t bucket = row_table_number(table, row, PROFILE_TIME), ns;

    ns = p->start_ns + bucket * p->bucket_ns + (p->real_known ? p->real_offset : 0);
    return ns / NS_PER_US;
}

void report_put_value(const RowTable *table, const ProfileRow *row, unsigned key, Buffer *out) {
    _cleanup_(buffer_done) Buffer value = {};

    if (key == PROFILE_TIME && row_table_number(table, row, key) != PROFILE_NONE) {
        uint64_t us = report_time_us(table, row);

        if (table->profile->real_known)
            figure_moment_short(out, us);
        else
            text_printf(out, "%.3f", (double)us / (double)US_PER_SECOND);
        return;
    }
    row_table_put(table, row, key, &value);
    text_escape(out, buffer_bytes(&value));
}

int report_trees(const Report *report, const RowTable *table, ProfileTree **ret) {
    _cleanup_(profile_tree_freep) ProfileTree *tree = NULL;
    _cleanup_free_ uint8_t *chosen = calloc(table->n + 1, 1);
    TreeDirection direction =
        report->settings->tree == REPORT_CALLEES ? TREE_CALLEES : TREE_CALLERS;

    if (!chosen)
        return report_no_memory();
    for (size_t i = 0; i < table->n; i++)
        chosen[i] = report_is_shown(report, table, report_row_weight(report, &table->rows[i]));
    if (profile_tree_new(table, direction, chosen, &tree) < 0 ||
        profile_tree_sort(tree, report->view->names, report->by_period) < 0)
        return report_no_memory();
    *ret = TAKE_PTR(tree);
    return STATUS_OK;
}
