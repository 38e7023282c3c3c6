/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts of `report`: one loaded view, its settings, and the ways to print it. */

#include "client/view/view.h"
#include "profile/row/profile-tree.h"

typedef enum ReportTree { REPORT_FLAT, REPORT_CALLERS, REPORT_CALLEES } ReportTree;

#define REPORT_PERCENT 1000000000ULL /* one percent, as a limit is kept */

typedef struct ReportSettings {
    ViewSettings view;
    unsigned tree, sort; /* of the words of the options, from 1; 0: not given */
    bool csv, addresses;
    bool has_limit;
    uint64_t limit; /* in REPORT_PERCENT */
} ReportSettings;

typedef struct Report {
    Context *context;
    const ReportSettings *settings;
    const View *view;
    RowKeys keys;
    RowSort sort;
    bool by_period;
    uint64_t limit; /* rows and branches with a smaller share are left out */
} Report;

/* Makes the rows of one event, or of all for PROFILE_NONE, and sorts them. Complains; an
 * ExitStatus. */
int report_rows(const Report *report, uint32_t event, RowTable **ret);
/* The trees of the rows that are not left out. */
int report_trees(const Report *report, const RowTable *table, ProfileTree **ret);
int report_no_memory(void);

static inline uint64_t report_weight(const Report *report, uint64_t samples, uint64_t period) {
    return report->by_period ? period : samples;
}

/* The weight by which rows are sorted and left out. */
static inline uint64_t report_row_weight(const Report *report, const ProfileRow *row) {
    return report->sort == ROW_BY_TOTAL
               ? report_weight(report, row->total_samples, row->total_period)
               : report_weight(report, row->samples, row->period);
}

/* Whether a weight is at least the limit. */
bool report_is_shown(const Report *report, const RowTable *table, uint64_t weight);
/* In percent of all rows. */
double report_share(const Report *report, const RowTable *table, uint64_t weight);
/* The value of a key as text, escaped. */
void report_put_value(const RowTable *table, const ProfileRow *row, unsigned key, Buffer *out);
/* The time of a row in microseconds since 1970, or of the recording's clock. */
uint64_t report_time_us(const RowTable *table, const ProfileRow *row);

/* Each prints one event, or all for PROFILE_NONE. */
int report_print_table(const Report *report, uint32_t event);
int report_print_trees(const Report *report, uint32_t event);
/* The whole report. */
int report_print_csv(const Report *report);
int report_print_json(const Report *report);
