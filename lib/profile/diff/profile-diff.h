/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What differs between two profiles: their rows by the same keys, joined by what they are called,
 * with a figure for each side and how sure the difference is. Profiles that keep PROFILE_TIME apart
 * show how much their counts vary anyway, so that noise is not reported as a change.
 */

#include "profile/diff/diff-span.h"
#include "profile/row/profile-row.h"

typedef struct DiffSide {
    const Profile *profile;
    const FrameNames *names; /* NULL where the keys need none */
    uint32_t event;          /* PROFILE_NONE: all */
    DiffWindow window;
} DiffSide;

typedef struct DiffOptions {
    RowKeys keys; /* without time */
    bool total;   /* compare what rows have anywhere in their stacks, else what was taken in them */
    bool by_rate; /* compare rates, else shares of all samples */
    bool by_period;    /* figures are of periods; whether they differ is decided by counts */
    double level;      /* the rate of false discoveries; 0: 0.05 */
    double change_min; /* a significant change is at least this large, as a share of `after` */
} DiffOptions;

typedef struct DiffRow {
    uint32_t values[ROW_KEYS]; /* texts, in the order of the keys */
    uint64_t before_samples, after_samples, before_period, after_period;
    double before, after; /* a share of the whole, or a rate for each second */
    double error;         /* the standard error of after - before */
    double p, q;          /* see significance.h */
    bool is_significant;
} DiffRow;

typedef struct ProfileDiff {
    DiffOptions options;
    TextSet *texts;
    DiffRow *rows; /* significant ones first, then the largest changes first */
    size_t n_rows, n_significant;
    DiffRow whole;        /* all samples together; compared by rate alone */
    bool is_spread_known; /* how much counts vary is known */
} ProfileDiff;

int profile_diff_new(const DiffSide *before, const DiffSide *after, const DiffOptions *options,
                     ProfileDiff **ret);
ProfileDiff *profile_diff_free(ProfileDiff *diff);
DEFINE_CLEANUP(ProfileDiff *, profile_diff_free);
