/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/profile-diff.h"

#include <errno.h>
#include <math.h>

#include "profile/diff/significance.h"
#include "util/array.h"

/*
 * Each side is made into rows by the keys and the time. Their values become one text, which joins
 * rows of both sides, and their counts go into the spans of the row's series. The number of tests
 * that are corrected for is that of rows with enough samples: whether a row has them says nothing
 * of whether it changed.
 */

enum { TESTED_MIN = 8 /* samples of a row on both sides, for a test */ };

static const double level_default = 0.05;

/* The counts of a row on one side, by span. */
typedef struct DiffSeries {
    double counts[SIGNIFICANCE_SPANS_MAX];
} DiffSeries;

typedef struct DiffPair {
    DiffSeries sides[2];
} DiffPair;

typedef struct DiffPass {
    ProfileDiff *diff;
    const DiffSide *sides[2];
    DiffSpans spans[2];
    TextSet *joined;  /* all values of a row as one text */
    uint32_t *row_of; /* by the number of the joined text; 0 is the empty one, and free */
    size_t n_row_of;
    DiffPair *pairs; /* of the rows */
    size_t n_pairs;
    DiffPair whole;
} DiffPass;

ProfileDiff *profile_diff_free(ProfileDiff *diff) {
    if (!diff)
        return NULL;
    text_set_free(diff->texts);
    free(diff->rows);
    free(diff);
    return NULL;
}

static int profile_diff_add_row(DiffPass *pass, const uint32_t *values, uint32_t *ret) {
    DiffRow *row = array_grow(&pass->diff->rows, &pass->diff->n_rows);
    DiffPair *pair = row ? array_grow(&pass->pairs, &pass->n_pairs) : NULL;

    if (!pair)
        return -ENOMEM;
    memcpy(row->values, values, sizeof(row->values));
    *ret = (uint32_t)pass->n_pairs - 1;
    return 0;
}

/* The row with the values of a row of one side. */
static int profile_diff_find_row(DiffPass *pass, const RowTable *table, const ProfileRow *from,
                                 uint32_t *ret) {
    const RowKeys *keys = &pass->diff->options.keys;
    _cleanup_(buffer_done) Buffer text = {};
    uint32_t values[ROW_KEYS] = {}, number, *row;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < keys->n; i++) {
        size_t at = text.size;

        row_table_put(table, from, keys->items[i], &text);
        r = buffer_error(&text);
        if (r >= 0)
            r = text_set_add(pass->diff->texts,
                             (Bytes){.data = text.data + at, .size = text.size - at}, &values[i]);
        buffer_u64(&text, text.size - at, false);
    }
    if (r >= 0)
        r = buffer_error(&text);
    if (r >= 0)
        r = text_set_add(pass->joined, (Bytes){.data = text.data, .size = text.size}, &number);
    while (r >= 0 && pass->n_row_of <= number) {
        row = array_grow(&pass->row_of, &pass->n_row_of);
        if (!row)
            return -ENOMEM;
        *row = UINT32_MAX;
    }
    if (r >= 0 && pass->row_of[number] == UINT32_MAX)
        r = profile_diff_add_row(pass, values, &pass->row_of[number]);
    if (r >= 0)
        *ret = pass->row_of[number];
    return r;
}

static void profile_diff_count(DiffPass *pass, unsigned side, uint32_t number, uint32_t bucket,
                               uint64_t samples, uint64_t period) {
    DiffRow *row = number == UINT32_MAX ? &pass->diff->whole : &pass->diff->rows[number];
    DiffPair *pair = number == UINT32_MAX ? &pass->whole : &pass->pairs[number];

    pair->sides[side].counts[diff_span_of(&pass->spans[side], bucket)] += (double)samples;
    *(side == 0 ? &row->before_samples : &row->after_samples) += samples;
    *(side == 0 ? &row->before_period : &row->after_period) += period;
}

static int profile_diff_take_rows(DiffPass *pass, unsigned side, const RowTable *table) {
    bool total = pass->diff->options.total;

    for (size_t i = 0; i < table->n; i++) {
        const ProfileRow *row = &table->rows[i];
        uint32_t number, bucket = row_table_number(table, row, PROFILE_TIME);
        uint64_t samples = total ? row->total_samples : row->samples;
        int r;

        if (row->samples > 0)
            profile_diff_count(pass, side, UINT32_MAX, bucket, row->samples, row->period);
        if (samples == 0)
            continue;
        r = profile_diff_find_row(pass, table, row, &number);
        if (r < 0)
            return r;
        profile_diff_count(pass, side, number, bucket, samples,
                           total ? row->total_period : row->period);
    }
    return 0;
}

static int profile_diff_take_side(DiffPass *pass, unsigned side) {
    const DiffSide *from = pass->sides[side];
    _cleanup_(row_table_freep) RowTable *table = NULL;
    RowKeys keys = pass->diff->options.keys;
    int r;

    assert(keys.n < ROW_KEYS);
    keys.items[keys.n++] = PROFILE_TIME;
    diff_spans_make(from->profile, &from->window, &pass->spans[side]);
    r = row_table_new(from->profile, from->names, &keys, from->event, &table);
    return r < 0 ? r : profile_diff_take_rows(pass, side, table);
}

/* The series of a row: its counts, and either all counts or the lengths of the spans. */
static SignificanceSeries profile_diff_series(const DiffPass *pass, const DiffPair *pair,
                                              unsigned side, bool is_share) {
    const DiffSpans *spans = &pass->spans[side];
    SignificanceSeries series = {.n = spans->n};

    for (size_t i = 0; i < spans->n; i++) {
        series.counts[i] = pair->sides[side].counts[i];
        series.norms[i] = is_share ? pass->whole.sides[side].counts[i] : spans->seconds[i];
    }
    return series;
}

static double profile_diff_figure(const DiffPass *pass, unsigned side, const DiffRow *row,
                                  bool is_share) {
    const DiffRow *whole = &pass->diff->whole;
    bool by_period = pass->diff->options.by_period;
    uint64_t samples = side == 0 ? row->before_samples : row->after_samples,
             period = side == 0 ? row->before_period : row->after_period,
             of_samples = side == 0 ? whole->before_samples : whole->after_samples,
             of_period = side == 0 ? whole->before_period : whole->after_period;
    double norm = (double)(by_period ? of_period : of_samples);

    if (!is_share)
        norm = pass->spans[side].all_seconds;
    return norm > 0 ? (double)(by_period ? period : samples) / norm : 0;
}

/* The error is that of counts; periods are in proportion to them. */
static void profile_diff_judge(DiffPass *pass, DiffRow *row, const DiffPair *pair, bool is_share) {
    SignificanceSeries before = profile_diff_series(pass, pair, 0, is_share),
                       after = profile_diff_series(pass, pair, 1, is_share);
    Significance s = significance_compare(&before, &after, is_share);
    uint64_t samples = row->before_samples + row->after_samples;

    row->before = profile_diff_figure(pass, 0, row, is_share);
    row->after = profile_diff_figure(pass, 1, row, is_share);
    row->p = row->q = s.p;
    row->error = s.error;
    if (pass->diff->options.by_period && !is_share && samples > 0)
        row->error *= (double)(row->before_period + row->after_period) / (double)samples;
    pass->diff->is_spread_known = s.is_spread_known;
}

static int profile_diff_adjust(ProfileDiff *diff) {
    _cleanup_free_ double *p = calloc(diff->n_rows + 1, sizeof(*p)),
                          *q = calloc(diff->n_rows + 1, sizeof(*q));
    double level = diff->options.level > 0 ? diff->options.level : level_default,
           change_min = diff->options.change_min * (diff->options.by_rate ? diff->whole.after : 1);
    size_t n = 0;

    if (!p || !q)
        return -ENOMEM;
    for (size_t i = 0; i < diff->n_rows; i++)
        if (diff->rows[i].before_samples + diff->rows[i].after_samples >= TESTED_MIN)
            p[n++] = diff->rows[i].p;
    if (significance_adjust(p, n, q) < 0)
        return -ENOMEM;
    n = 0;
    for (size_t i = 0; i < diff->n_rows; i++) {
        DiffRow *row = &diff->rows[i];

        row->q = row->before_samples + row->after_samples >= TESTED_MIN ? q[n++] : 1;
        row->is_significant = row->q <= level && fabs(row->after - row->before) >= change_min;
        diff->n_significant += row->is_significant;
    }
    return 0;
}

static int profile_diff_compare(const void *x, const void *y, void *arg) {
    const ProfileDiff *diff = arg;
    const DiffRow *a = x, *b = y;
    double c = fabs(a->after - a->before), d = fabs(b->after - b->before);

    if (a->is_significant != b->is_significant)
        return a->is_significant ? -1 : 1;
    if (c != d)
        return c > d ? -1 : 1;
    for (size_t i = 0; i < diff->options.keys.n; i++)
        if (a->values[i] != b->values[i])
            return a->values[i] < b->values[i] ? -1 : 1;
    return 0;
}

static int profile_diff_fill(DiffPass *pass) {
    ProfileDiff *diff = pass->diff;
    int r = profile_diff_take_side(pass, 0);

    if (r >= 0)
        r = profile_diff_take_side(pass, 1);
    if (r < 0)
        return r;
    for (size_t i = 0; i < diff->n_rows; i++)
        profile_diff_judge(pass, &diff->rows[i], &pass->pairs[i], !diff->options.by_rate);
    profile_diff_judge(pass, &diff->whole, &pass->whole, false);
    r = profile_diff_adjust(diff);
    if (r >= 0 && diff->n_rows > 0)
        qsort_r(diff->rows, diff->n_rows, sizeof(*diff->rows), profile_diff_compare, diff);
    return r;
}

static void profile_diff_pass_done(DiffPass *pass) {
    profile_diff_free(pass->diff);
    text_set_free(pass->joined);
    free(pass->row_of);
    free(pass->pairs);
}

int profile_diff_new(const DiffSide *before, const DiffSide *after, const DiffOptions *options,
                     ProfileDiff **ret) {
    _cleanup_(profile_diff_pass_done) DiffPass pass = {.sides = {before, after}};
    int r;

    pass.diff = calloc(1, sizeof(*pass.diff));
    if (!pass.diff)
        return -ENOMEM;
    pass.diff->options = *options;
    r = text_set_new(&pass.diff->texts);
    if (r >= 0)
        r = text_set_new(&pass.joined);
    if (r >= 0)
        r = profile_diff_fill(&pass);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(pass.diff);
    return 0;
}
