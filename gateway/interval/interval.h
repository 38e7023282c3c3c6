/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What profd recorded in [since, until), as one profile with the names of its frames. An interval
 * is made by a thread of source/ and does not change after that; it is counted, on the main thread
 * alone.
 */

#include "profile/frame-names.h"
#include "profile/profile.h"

/* The keys that the labels of its profile keep apart. */
#define INTERVAL_KEYS                                                                              \
    (1U << PROFILE_EVENT | 1U << PROFILE_COMM | 1U << PROFILE_PID | 1U << PROFILE_CGROUP |         \
     1U << PROFILE_UNIT | 1U << PROFILE_CONTAINER)

/* What Kubernetes calls the owner of a control group; not escaped, "": not known. */
typedef struct IntervalPod {
    uint32_t cgroup; /* a text of the profile */
    char *namespace, *pod, *container;
} IntervalPod;

/* CLOCK_REALTIME. */
typedef struct IntervalSleep {
    uint64_t since_ns, until_ns;
} IntervalSleep;

enum { INTERVAL_SLEEPS_MAX = 8 };

typedef struct Interval {
    unsigned references;
    uint64_t since_ns, until_ns; /* CLOCK_REALTIME */
    uint64_t missing_ns;         /* how much of it was not recorded, as far as profd says */
    uint64_t deleted_ns;         /* of that, what profd has deleted */
    /* When the machine slept after the interval before, as far as profd says and they fit in; of
     * one that was followed. */
    IntervalSleep sleeps[INTERVAL_SLEEPS_MAX];
    size_t n_sleeps;
    Profile *profile;
    FrameNames *names;
    IntervalPod *pods; /* sorted by cgroup */
    size_t n_pods;
} Interval;

/* With one reference; takes over the profile and the names when it succeeds. */
int interval_new(uint64_t since_ns, uint64_t until_ns, Profile *profile, FrameNames *names,
                 Interval **ret);
Interval *interval_ref(Interval *interval);
Interval *interval_unref(Interval *interval);
DEFINE_CLEANUP(Interval *, interval_unref);
/* NULL: Kubernetes has no name for it. */
const IntervalPod *interval_pod(const Interval *interval, uint32_t cgroup);
