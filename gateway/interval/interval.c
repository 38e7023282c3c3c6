/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "interval/interval.h"

#include <errno.h>

/*
 * An interval is shared by the destinations that send it, on the main thread, so its references are
 * counted without a lock. The last one frees it: intervals are the largest things that the gateway
 * holds.
 */

int interval_new(uint64_t since_ns, uint64_t until_ns, Profile *profile, FrameNames *names,
                 Interval **ret) {
    Interval *interval = calloc(1, sizeof(*interval));

    if (!interval)
        return -ENOMEM;
    interval->references = 1;
    interval->since_ns = since_ns;
    interval->until_ns = until_ns;
    interval->profile = profile;
    interval->names = names;
    *ret = interval;
    return 0;
}

Interval *interval_ref(Interval *interval) {
    interval->references++;
    return interval;
}

Interval *interval_unref(Interval *interval) {
    if (!interval || --interval->references > 0)
        return NULL;
    for (size_t i = 0; i < interval->n_pods; i++) {
        free(interval->pods[i].namespace);
        free(interval->pods[i].pod);
        free(interval->pods[i].container);
    }
    free(interval->pods);
    profile_free(interval->profile);
    frame_names_free(interval->names);
    free(interval);
    return NULL;
}

static int interval_compare_pod(const void *key, const void *pod) {
    uint32_t a = *(const uint32_t *)key, b = ((const IntervalPod *)pod)->cgroup;

    return a < b ? -1 : a > b;
}

const IntervalPod *interval_pod(const Interval *interval, uint32_t cgroup) {
    return interval->n_pods == 0 ? NULL
                                 : bsearch(&cgroup, interval->pods, interval->n_pods,
                                           sizeof(*interval->pods), interval_compare_pod);
}
