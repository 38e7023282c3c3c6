/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "keeper/control-socket.h"
#include "keeper/serve/sealer.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * Somebody else may have created the store: a package or systemd, owned by root and empty, or a
 * profd that ran before the user profd existed. Files in it that the keeper's user owns become the
 * recorder's, except finished recordings, which stay root's. Links are never followed.
 */

enum {
    DEPTH_MAX = 4, /* runtime, store, sessions, one session */
    ENTRIES_MAX = 1 << 20,
};

static int folder_open(int above, const char *name) {
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* By its name: a recording in progress has a different suffix. */
static bool folder_is_finished(const char *name, const struct stat *status) {
    const char *suffix = strstr(name, ".perf.data");

    return S_ISREG(status->st_mode) && suffix && strcmp(suffix, ".perf.data") == 0;
}

static int folder_hand_over(const KeeperHost *host, int folder, unsigned depth);

static int folder_hand_over_entry(const KeeperHost *host, int folder, const char *name,
                                  unsigned depth) {
    _cleanup_close_ int below = -1;
    struct stat status;

    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (status.st_uid != geteuid() || folder_is_finished(name, &status))
        return 0;
    if (S_ISREG(status.st_mode))
        return fchownat(folder, name, host->uid, host->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (!S_ISDIR(status.st_mode))
        return 0;
    below = folder_open(folder, name);
    if (below < 0)
        return below;
    return folder_hand_over(host, below, depth + 1);
}

static int folder_hand_over(const KeeperHost *host, int folder, unsigned depth) {
    int copy = folder_open(folder, "."), r = copy < 0 ? copy : 0;
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!entries) {
        closep(&copy);
        return r < 0 ? r : -ENOMEM;
    }
    for (size_t n = 0; r == 0 && depth < DEPTH_MAX && n < ENTRIES_MAX && (entry = readdir(entries));
         n++)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = folder_hand_over_entry(host, folder, entry->d_name, depth);
    (void)closedir(entries);
    return r == 0 && fchown(folder, host->uid, host->gid) < 0 ? -errno : r;
}

/* Whether a runtime folder may contain it. */
static bool folder_is_known(const char *name) {
    return name[0] == '.' || strcmp(name, CONTROL_SOCKET_NAME) == 0 || strcmp(name, "store") == 0;
}

/* Whether it is empty or contains only what a store has. */
static bool folder_is_ours(int folder) {
    int copy = folder_open(folder, ".");
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    bool is_empty = true, has_sessions = false;
    struct dirent *entry;

    if (!entries) {
        closep(&copy);
        return false;
    }
    while ((entry = readdir(entries))) {
        is_empty &= folder_is_known(entry->d_name);
        has_sessions |= strcmp(entry->d_name, "sessions") == 0;
    }
    (void)closedir(entries);
    return is_empty || has_sessions;
}

/* Creates missing folders, each with exactly this mode. */
static int folder_make(const char *path, mode_t mode) {
    mode_t before = umask(0777 & ~mode);
    int r = file_make_folders(path, mode);

    (void)umask(before);
    return r;
}

static int folder_take_over(const KeeperHost *host, int folder) {
    struct stat status;
    int r;

    if (fstat(folder, &status) < 0)
        return -errno;
    if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH) ||
        !folder_is_ours(folder))
        return 0;
    r = folder_hand_over(host, folder, 0);
    if (r == 0 && host->has_read_group && fchown(folder, host->uid, host->read_group) < 0)
        return -errno;
    return r;
}

int folder_prepare(const KeeperHost *host, const char *path, mode_t mode) {
    _cleanup_close_ int folder = -1;
    int r = folder_make(path, mode);

    if (r < 0 || !host->has_user)
        return r;
    /* Following a link is right here, because the administrator chose the path. */
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    r = folder_take_over(host, folder);
    if (r == 0)
        sealer_admit(host, folder);
    return r;
}
