/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/sealer.h"

#include <errno.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/serve/acl.h"

/*
 * Runs in a process of its own: the file system of the store may delay a change of owner for any
 * time, and the recorder then abandons that process. Such a process still completes the change that
 * it waits for, and nothing after it. So after each single change the state must be acceptable: a
 * file belongs to root at once, with the mode that the recorder gave it, and a folder always
 * belongs to the recorder, which could not delete files in it otherwise.
 */

enum { FILE_MODE = 0640, FOLDER_MODE = 0750 };

static gid_t sealer_readers_of(const KeeperHost *host, bool sensitive) {
    if (sensitive)
        return host->has_admin_group ? host->admin_group : getegid();
    return host->has_read_group ? host->read_group : getegid();
}

/* Acts as the owner, who may change the mode and the access list without special rights. On a file
 * system without access lists, users who are only in profd-admin cannot read the file. */
static int sealer_admit_as(uid_t owner, const KeeperHost *host, int fd, mode_t mode,
                           bool sensitive) {
    uid_t ours = geteuid();
    struct stat status;
    int r = fstat(fd, &status) < 0 ? -errno : 0;

    (void)setfsuid(owner);
    if (r == 0 && (status.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
        r = -errno;
    if (r == 0 && !sensitive && host->has_admin_group)
        (void)acl_admit(fd, host->admin_group);
    (void)setfsuid(ours);
    return r;
}

static int sealer_seal_folder(const KeeperHost *host, int fd, const struct stat *status,
                              bool sensitive) {
    gid_t group = sealer_readers_of(host, sensitive);

    if (status->st_uid != host->uid)
        return -EPERM;
    if (geteuid() == 0 && status->st_gid != group && fchown(fd, (uid_t)-1, group) < 0)
        return -errno;
    return sealer_admit_as(host->uid, host, fd, FOLDER_MODE, sensitive);
}

/* Change the owner first, so that the recorder cannot change the mode after it was checked. A file
 * with a second link could be anybody's. */
static int sealer_seal_file(const KeeperHost *host, int fd, const struct stat *status,
                            bool sensitive) {
    gid_t group = sealer_readers_of(host, sensitive);
    bool is_sealed = status->st_uid == geteuid() && status->st_gid == group &&
                     status->st_mode == (S_IFREG | FILE_MODE);

    if (!is_sealed && (status->st_uid != host->uid || status->st_nlink > 1))
        return -EPERM;
    if (!is_sealed && geteuid() == 0 && fchown(fd, geteuid(), group) < 0)
        return -errno;
    return sealer_admit_as(geteuid(), host, fd, FILE_MODE, sensitive);
}

void sealer_admit(const KeeperHost *host, int folder) {
    struct stat status;

    if (fstat(folder, &status) == 0 && host->has_read_group && status.st_gid == host->read_group &&
        (status.st_mode & FOLDER_MODE) == FOLDER_MODE)
        (void)sealer_admit_as(status.st_uid, host, folder, status.st_mode & 07777, false);
}

int sealer_seal(const KeeperHost *host, int fd, bool sensitive) {
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return sealer_seal_folder(host, fd, &status, sensitive);
    return S_ISREG(status.st_mode) ? sealer_seal_file(host, fd, &status, sensitive) : -EPERM;
}
