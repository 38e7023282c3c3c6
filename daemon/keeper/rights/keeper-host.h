/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the keeper knows about its machine; found once, before it drops its rights. */

#include <stdbool.h>
#include <sys/types.h>

typedef struct KeeperHost {
    uid_t uid; /* of the recorder; the keeper's own if there is no user `profd` */
    gid_t gid;
    bool has_user;     /* it differs from the keeper's */
    gid_t read_group;  /* profd-read; root's if it is missing */
    gid_t admin_group; /* profd-admin; root's if it is missing */
    bool has_read_group, has_admin_group;
    int cgroup;  /* the root of the cgroup tree that perf events use; -1: none */
    int tracefs; /* the events folder of tracefs; -1: none */
} KeeperHost;

void keeper_host_find(KeeperHost *ret);
void keeper_host_done(KeeperHost *host);
