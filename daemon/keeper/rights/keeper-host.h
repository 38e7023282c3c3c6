/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the keeper knows of the machine it runs on, found once, before it gives up rights. */

#include <stdbool.h>
#include <sys/types.h>

typedef struct KeeperHost {
    uid_t uid; /* the recorder's; the keeper's own where there is no user `profd` */
    gid_t gid;
    bool has_user;     /* it is another than the keeper's */
    gid_t read_group;  /* profd-read; root's where it lacks */
    gid_t admin_group; /* profd-admin; root's where it lacks */
    bool has_read_group, has_admin_group;
    int cgroup;  /* the root of the tree that perf events follow; -1: none */
    int tracefs; /* its events folder; -1: none */
} KeeperHost;

void keeper_host_find(KeeperHost *ret);
void keeper_host_done(KeeperHost *host);
