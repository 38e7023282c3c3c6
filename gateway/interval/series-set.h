/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Distinct sets of labels and their samples: equal sets of one event are one series. */

#include "label/label-set.h"
#include "util/hash-index.h"

enum { SERIES_MAX = 8192 };

typedef struct Series {
    LabelSet labels; /* always with host, service_name and event */
    uint32_t event;  /* of the profile */
    uint64_t samples, period;
    uint64_t other; /* samples that are counted as above a limit */
} Series;

/* A zeroed set is valid and empty. */
typedef struct SeriesSet {
    Series *items;
    HashIndex index;
} SeriesSet;

void series_set_done(SeriesSet *set);
/* The number of the series with these labels; takes them over, also on failure. -ENOSPC: it is not
 * there, and there are `max` already. */
int series_set_get(SeriesSet *set, LabelSet *labels, uint32_t event, size_t max, uint32_t *ret);
/* By labels, then by event. */
int series_compare(const Series *a, const Series *b);
/* Frees what the set holds of one series. */
void series_done(Series *series);
