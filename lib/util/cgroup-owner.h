/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Derives the owner of a control group from its path: the systemd unit, the container with its
 * runtime, and the Kubernetes pod. The names of groups are the only source, so the answer holds
 * also for groups that no longer exist.
 */

#include "util/bytes.h"

enum {
    CGROUP_CONTAINER_MAX = 256, /* with the NUL */
    CGROUP_POD_MAX = 37,        /* a UUID and a NUL; static pods have 32 digits */
};

/* The borrowed names are parts of the path; an empty one is unknown. */
typedef struct CgroupOwner {
    Bytes unit;      /* as systemctl shows it: the first unit that is not a slice */
    Bytes user_unit; /* the unit of a user's service manager, below user@UID.service */
    Bytes slice;     /* the last slice above the unit */
    /* "docker", "containerd", "cri-o", "podman", "lxc", "nspawn", "kubernetes" where the path does
     * not show which runtime it is; NULL: not in a container. */
    const char *runtime;
    char container[CGROUP_CONTAINER_MAX]; /* the id, or the name of a machine; of nested ones the
                                           * innermost */
    char pod[CGROUP_POD_MAX];             /* the uid of the pod, with dashes */
} CgroupOwner;

void cgroup_owner_find(Bytes path, CgroupOwner *ret);
