/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits how many values each label has in an interval: the others become "other". */

#include "label/label-set.h"
#include "profile/text-set.h"

#define SERIES_OTHER "other"

/* One value of one label. */
typedef struct SeriesValue {
    uint64_t samples;
    bool is_kept;
} SeriesValue;

/* A zeroed one is valid and empty. */
typedef struct SeriesValues {
    TextSet *texts; /* a name and a value, and a NUL between them */
    SeriesValue *items;
    size_t n;
} SeriesValues;

void series_values_done(SeriesValues *values);
/* Counts the samples of each value. */
int series_values_add(SeriesValues *values, const LabelSet *labels, uint64_t samples);
/* Keeps the `max` values of each label that have the most samples. */
int series_values_choose(SeriesValues *values, size_t max);
/* 1: a value became "other", because it is not kept; 0; -ENOMEM. The labels were added before, and
 * the host and the event are left alone. */
int series_values_limit(const SeriesValues *values, LabelSet *labels);
