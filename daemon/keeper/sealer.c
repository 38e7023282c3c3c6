/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/sealer.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Runs in a process of its own: the file system of the store can keep a change of the owner waiting
 * for as long as it likes, and the recorder then leaves that process behind. Such a process still
 * makes the change it waits for, and nothing after it. So each change is one that may be the last:
 * a file belongs to root at once, with the mode that the recorder made it with, and a folder
 * belongs to the recorder all the time, who could otherwise never empty it.
 */

enum { FILE_MODE = 0640, FOLDER_MODE = 0750 };

static gid_t readers_of(const KeeperHost *host, bool sensitive) {
    if (sensitive)
        return host->has_admin_group ? host->admin_group : getegid();
    return host->has_read_group ? host->read_group : getegid();
}

/* Only the owner may change the mode, and that takes no right. */
static int change_mode_as(uid_t owner, int fd, mode_t mode) {
    uid_t ours = geteuid();
    int r;

    (void)setfsuid(owner);
    r = fchmod(fd, mode) < 0 ? -errno : 0;
    (void)setfsuid(ours);
    return r;
}

static int seal_folder(const KeeperHost *host, int fd, const struct stat *status, gid_t group) {
    if (status->st_uid != host->uid)
        return -EPERM;
    if (geteuid() == 0 && status->st_gid != group && fchown(fd, (uid_t)-1, group) < 0)
        return -errno;
    return status->st_mode == (S_IFDIR | FOLDER_MODE) ? 0
                                                      : change_mode_as(host->uid, fd, FOLDER_MODE);
}

/* The owner comes first, so that the recorder cannot change the mode once it is checked. A file
 * with a second name could be anybody's. */
static int seal_file(const KeeperHost *host, int fd, const struct stat *status, gid_t group) {
    bool is_sealed = status->st_uid == geteuid() && status->st_gid == group &&
                     status->st_mode == (S_IFREG | FILE_MODE);

    if (is_sealed)
        return 0;
    if (status->st_uid != host->uid || status->st_nlink > 1)
        return -EPERM;
    if (geteuid() == 0 && fchown(fd, geteuid(), group) < 0)
        return -errno;
    return fchmod(fd, FILE_MODE) < 0 ? -errno : 0;
}

int sealer_seal(const KeeperHost *host, int fd, bool sensitive) {
    gid_t group = readers_of(host, sensitive);
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return seal_folder(host, fd, &status, group);
    return S_ISREG(status.st_mode) ? seal_file(host, fd, &status, group) : -EPERM;
}
