/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What Kubernetes calls the pods and containers of this host, by the names of the files that the
 * kubelet makes: no connection to Kubernetes is needed. The folders are looked at when an unknown
 * pod is met, at most once in POD_NAMES_PAUSE_NS.
 */

#include "interval/interval.h"
#include "util/cgroup-owner.h"

enum {
    POD_NAMES_MAX = 2048,          /* pods and containers that are remembered */
    POD_NAMES_ENTRIES_MAX = 65536, /* entries of a folder that are looked at */
};

#define POD_NAMES_PAUSE_NS 10000000000ULL

typedef struct PodNames PodNames;

/* `root` is before the paths: "" except in tests. */
int pod_names_new(const char *root, PodNames **ret);
PodNames *pod_names_free(PodNames *names);
DEFINE_CLEANUP(PodNames *, pod_names_free);

/* Sets the pods of an interval that has none yet. `now_ns`: CLOCK_MONOTONIC. 0 or -ENOMEM. */
int pod_names_add(PodNames *names, uint64_t now_ns, Interval *interval);
