/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/right.h"

#include <errno.h>
#include <grp.h>
#include <sys/socket.h>

#include "util/macro.h"

/*
 * The kernel records uid, gid, pid and groups when a client connects; nothing that the client says
 * about itself counts. A uid that our user namespace does not map appears as the overflow uid, like
 * `nobody`. That uid gets no right, whatever its groups are.
 */

enum {
    OVERFLOW_UID = 65534,
    GROUPS_MAX = 65536, /* the most groups that the kernel allows */
};

static bool right_find_group(const char *name, gid_t *ret) {
    const struct group *group = getgrnam(name);

    if (group)
        *ret = group->gr_gid;
    return group != NULL;
}

Groups groups_find(void) {
    Groups groups = {};

    groups.has_read = right_find_group("profd-read", &groups.read);
    groups.has_admin = right_find_group("profd-admin", &groups.admin);
    return groups;
}

static Right right_by_group(const Groups *groups, gid_t gid) {
    if (groups->has_admin && gid == groups->admin)
        return RIGHT_ADMIN;
    return groups->has_read && gid == groups->read ? RIGHT_READ : RIGHT_ANYONE;
}

/* Checks the supplementary groups. A kernel that does not report them gives no right. */
static int right_by_groups(int fd, const Groups *groups, Right *ret) {
    _cleanup_free_ gid_t *gids = NULL;
    socklen_t size = 0;
    Right right = *ret;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno == ENOPROTOOPT)
        return 0;
    if (errno != ERANGE || size > GROUPS_MAX * sizeof(gid_t))
        return -errno;
    gids = malloc(size);
    if (!gids)
        return -ENOMEM;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, gids, &size) < 0)
        return -errno;
    for (size_t i = 0; i < size / sizeof(gid_t); i++)
        right = MAX(right, right_by_group(groups, gids[i]));
    *ret = right;
    return 0;
}

int peer_of(int fd, const Groups *groups, Peer *ret) {
    struct ucred credentials;
    socklen_t size = sizeof(credentials);
    Peer peer;
    int r = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        return -errno;
    peer = (Peer){.uid = credentials.uid,
                  .gid = credentials.gid,
                  .pid = credentials.pid,
                  .right = right_by_group(groups, credentials.gid)};
    if (peer.uid == OVERFLOW_UID || peer.uid == (uid_t)-1)
        peer.right = RIGHT_NOTHING;
    else if (peer.uid == 0 || peer.uid == geteuid())
        peer.right = RIGHT_ADMIN;
    else
        r = right_by_groups(fd, groups, &peer.right);
    if (r < 0)
        return r;
    *ret = peer;
    return 0;
}
