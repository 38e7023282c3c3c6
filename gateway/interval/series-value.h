/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Limits how many values each label has in an interval: those that come later become "other". */

#include "label/label-set.h"
#include "util/hash-index.h"
#include "profile/text-set.h"

#define SERIES_OTHER "other"

typedef struct SeriesValues {
    size_t max;                      /* of a label; 0: no limit */
    TextSet *seen;                   /* a name and a value, and a NUL between them */
    struct SeriesValueCount *counts; /* of each name */
    HashIndex by_name;
} SeriesValues;

/* Zeroed but for `max`, it is valid and empty. */
void series_values_done(SeriesValues *values);
/* 1: it changed a value; 0; -ENOMEM. The host and the event are left alone. */
int series_values_limit(SeriesValues *values, LabelSet *labels);
