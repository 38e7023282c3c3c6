/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Divides an interval into series, each with its own set of labels: those that the owner of the
 * control group gives, changed by the rules of a destination. Labels of the profile whose sets
 * become equal are one series. Series are sorted by their labels, so that the same interval is
 * always divided in the same way.
 *
 * Labels: host; unit, user_unit, slice, container, runtime and pod (the uid) by the control group;
 * cgroup, its path, if it has neither a unit nor a container; namespace, pod_name and
 * container_name as Kubernetes calls them; comm, event, service_name. What is not known is left
 * out. Values are escaped like all names from outside, and cut at LABEL_VALUE_MAX.
 *
 * service_name: the container's name in Kubernetes, or that of a container which has a name instead
 * of an id; outside of containers the unit without suffix and instance (that of a user's service
 * manager, where there is one), unless it is a scope other than init.scope; else comm; else
 * "unknown".
 */

#include "interval/interval.h"
#include "interval/series-set.h"
#include "label/relabel.h"

#define SERIES_NONE UINT32_MAX /* a rule drops it */

typedef struct SeriesList {
    uint32_t *of_label; /* the series of each label of the profile, or SERIES_NONE */
    Series *items;
    size_t n;
    uint64_t dropped; /* samples that rules dropped */
    uint64_t other;   /* samples of series above the limit, which are in one for each event, with
                       * service_name "other", and of values above it, which are "other" */
} SeriesList;

typedef struct SeriesOptions {
    const char *host;
    RelabelRule *const *rules;
    size_t n_rules;
    size_t max_series; /* the series with the most samples stay; 0: SERIES_MAX */
    size_t max_values; /* of a label; 0: no limit */
} SeriesOptions;

int series_list_make(const Interval *interval, const SeriesOptions *options, SeriesList *ret);
void series_list_done(SeriesList *list);
