/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Divides an interval into series, each with its own set of labels: those that the owner of the
 * control group gives, changed by the rules of a destination. Labels of the profile whose sets
 * become equal are one series. Series are sorted by their labels, so that the same interval is
 * always divided in the same way.
 */

#include "interval/interval.h"
#include "label/label-set.h"
#include "label/relabel.h"

#define SERIES_NONE UINT32_MAX /* a rule drops it */

typedef struct Series {
    LabelSet labels; /* always with host, service_name and event */
    uint32_t event;  /* of the profile */
    uint64_t samples, period;
} Series;

typedef struct SeriesList {
    uint32_t *of_label; /* the series of each label of the profile, or SERIES_NONE */
    Series *items;
    size_t n;
    uint64_t dropped; /* samples that rules dropped */
    uint64_t other;   /* samples of series above the limit, which are in one with service_name
                       * "other" */
} SeriesList;

typedef struct SeriesOptions {
    const char *host;
    RelabelRule *const *rules;
    size_t n_rules;
    size_t max_series; /* 0: no limit; the series with the most samples stay */
} SeriesOptions;

int series_list_make(const Interval *interval, const SeriesOptions *options, SeriesList *ret);
void series_list_done(SeriesList *list);
