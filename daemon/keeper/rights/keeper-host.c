/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/keeper-host.h"

#include <fcntl.h>
#include <grp.h>
#include <mntent.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "util/cgroup.h"
#include "util/macro.h"

/*
 * Looks up the users and groups of an installation, and two mounts. Each may be missing: a profd
 * that is run by hand has no user of its own, and a machine may have neither cgroups nor tracefs.
 */

static const char user_name[] = "profd", read_name[] = "profd-read", admin_name[] = "profd-admin";

static bool keeper_host_find_group(const char *name, gid_t *ret) {
    const struct group *group = getgrnam(name);

    if (group)
        *ret = group->gr_gid;
    return group != NULL;
}

static void keeper_host_find_user(KeeperHost *host) {
    const struct passwd *user = geteuid() == 0 ? getpwnam(user_name) : NULL;

    host->uid = user ? user->pw_uid : geteuid();
    host->gid = user ? user->pw_gid : getegid();
    host->has_user = user && user->pw_uid != 0;
}

static void keeper_host_open_cgroup(KeeperHost *host) {
    _cleanup_free_ CgroupTree *tree = malloc(sizeof(*tree));

    if (tree && cgroup_tree_find("", tree) == 0)
        host->cgroup = open(tree->mount, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void keeper_host_open_tracefs(KeeperHost *host, const struct mntent *mount) {
    char path[512];

    if (host->tracefs >= 0 || strcmp(mount->mnt_type, "tracefs") != 0)
        return;
    snprintf(path, sizeof(path), "%.500s/events", mount->mnt_dir);
    host->tracefs = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

void keeper_host_find(KeeperHost *ret) {
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    KeeperHost host = {.cgroup = -1, .tracefs = -1};
    struct mntent mount;
    char line[4096];

    keeper_host_find_user(&host);
    host.has_read_group = geteuid() == 0 && keeper_host_find_group(read_name, &host.read_group);
    host.has_admin_group = geteuid() == 0 && keeper_host_find_group(admin_name, &host.admin_group);
    keeper_host_open_cgroup(&host);
    while (mounts && getmntent_r(mounts, &mount, line, sizeof(line)))
        keeper_host_open_tracefs(&host, &mount);
    if (mounts)
        (void)endmntent(mounts);
    *ret = host;
}

void keeper_host_done(KeeperHost *host) {
    closep(&host->cgroup);
    closep(&host->tracefs);
}
