/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/frame/command.h"

/*
 * A file is made by mkstemp(), a folder by mkdtemp(), both in the parent folder of OUT, so that one
 * rename moves them into place: with RENAME_NOREPLACE if nothing may be replaced, and with
 * RENAME_EXCHANGE if OUT is a folder, since rename(2) cannot replace a folder that is not empty. A
 * folder is only replaced or removed if it contains a recording and nothing else.
 *
 * The only global variable is what the signal handler has to remove.
 */

enum { FILES_MAX = 64 }; /* data.N of a folder that we write */

static struct {
    volatile sig_atomic_t armed;
    char path[PATH_MAX];
    int folder; /* its descriptor; -1: a file */
} unfinished = {.folder = -1};

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* "data.N" without printf, for the signal handler. */
static void target_name_of_file(char name[16], unsigned n) {
    strcpy(name, "data.");
    if (n >= 10)
        name[5] = (char)('0' + n / 10);
    name[n >= 10 ? 6 : 5] = (char)('0' + n % 10);
    name[n >= 10 ? 7 : 6] = '\0';
}

static void target_remove_unfinished(void) {
    char name[16];

    if (unfinished.folder < 0) {
        (void)unlink(unfinished.path);
        return;
    }
    (void)unlinkat(unfinished.folder, "data", 0);
    for (unsigned n = 0; n < FILES_MAX; n++) {
        target_name_of_file(name, n);
        (void)unlinkat(unfinished.folder, name, 0);
    }
    (void)rmdir(unfinished.path);
}

static void target_on_signal(int number) {
    if (unfinished.armed)
        target_remove_unfinished();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void target_arm(const char *path, int folder) {
    struct sigaction old, action = {.sa_handler = target_on_signal};

    strcpy(unfinished.path, path);
    unfinished.folder = folder;
    unfinished.armed = true;
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &action, NULL);
}

static void target_block_signals(sigset_t *ret_old) {
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        sigaddset(&set, signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, ret_old);
}

static bool target_is_own_name(const char *name) {
    return strcmp(name, "data") == 0 || strncmp(name, "data.", 5) == 0;
}

/* Whether the folder contains only files of a recording: 0, -ENOTEMPTY or an error. */
static int target_folder_is_recording(const char *path) {
    DIR *dir = opendir(path);
    int r = 0;

    if (!dir)
        return -errno;
    for (struct dirent *entry; r == 0 && (entry = readdir(dir));) {
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!target_is_own_name(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            r = -ENOTEMPTY;
    }
    closedir(dir);
    return r;
}

/* 0: nothing exists there; 1: something that may be replaced; a negative errno. */
static int target_may_write(const char *path, bool force) {
    struct stat st;
    int r;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!force)
        return -EEXIST;
    if (S_ISDIR(st.st_mode)) {
        r = target_folder_is_recording(path);
        return r < 0 ? r : 1;
    }
    if (S_ISLNK(st.st_mode) && stat(path, &st) < 0)
        return errno == ENOENT ? 1 : -errno;
    return S_ISREG(st.st_mode) ? 1 : -EINVAL;
}

/* OUT/ is the folder OUT; the temporary name goes into its parent. */
static size_t target_parent_length(const char *path, size_t *ret_length) {
    size_t n = strlen(path), parent;

    while (n > 1 && path[n - 1] == '/')
        n--;
    *ret_length = n;
    parent = n;
    while (parent > 0 && path[parent - 1] != '/')
        parent--;
    return parent;
}

static int target_make_temporary(Target *target) {
    sigset_t old;
    int r = 0;

    target_block_signals(&old);
    if (target->layout == PD_LAYOUT_DIRECTORY) {
        if (!mkdtemp(target->temporary))
            r = -errno;
        else if ((target->fd = open(target->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
            r = -errno;
            (void)rmdir(target->temporary);
        }
    } else if ((target->fd = mkostemp(target->temporary, O_CLOEXEC)) < 0) {
        r = -errno;
    }
    if (r == 0)
        target_arm(target->temporary, target->layout == PD_LAYOUT_DIRECTORY ? target->fd : -1);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return r;
}

int target_open(Target *target, const char *path, PdLayout layout, bool force) {
    size_t length, parent;
    int r;

    *target = (Target){.path = path, .layout = layout, .force = force, .fd = -1};
    if (strcmp(path, "-") == 0) {
        if (layout != PD_LAYOUT_PIPE)
            return -EINVAL;
        if (isatty(STDOUT_FILENO))
            return -ENOTTY;
        target->fd = STDOUT_FILENO;
        return 0;
    }
    r = target_may_write(path, force);
    if (r < 0)
        return r;
    parent = target_parent_length(path, &length);
    if (asprintf(&target->temporary, "%.*s.profctl-XXXXXX", (int)parent, path) < 0) {
        target->temporary = NULL;
        return -ENOMEM;
    }
    r = strlen(target->temporary) < PATH_MAX ? target_make_temporary(target) : -ENAMETOOLONG;
    if (r < 0) {
        free(target->temporary);
        target->temporary = NULL;
    }
    return r;
}

static int target_sync_all(const Target *target) {
    char name[16];

    for (unsigned n = 0; target->layout == PD_LAYOUT_DIRECTORY && n <= FILES_MAX; n++) {
        _cleanup_close_ int fd = -1;

        if (n < FILES_MAX)
            target_name_of_file(name, n);
        else
            strcpy(name, "data");
        fd = openat(target->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT)
            continue;
        if (fd < 0 || fsync(fd) < 0)
            return -errno;
    }
    return fsync(target->fd) < 0 ? -errno : 0;
}

/* Removes what an exchange has left under the temporary name. */
static int target_remove_replaced(const char *path) {
    struct stat st;
    DIR *dir;
    int r;

    if (lstat(path, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return unlink(path) < 0 ? -errno : 0;
    r = target_folder_is_recording(path);
    if (r < 0)
        return r;
    dir = opendir(path);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (target_is_own_name(entry->d_name))
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    return rmdir(path) < 0 ? -errno : 0;
}

/* Without RENAME_NOREPLACE, link(2) also fails if the name exists. */
static int target_move_by_link(const Target *target, const char *path) {
    struct stat st;

    if (target->layout == PD_LAYOUT_DIRECTORY) {
        if (lstat(path, &st) == 0)
            return -EEXIST;
        return rename(target->temporary, path) < 0 ? -errno : 0;
    }
    if (link(target->temporary, path) < 0)
        return -errno;
    return unlink(target->temporary) < 0 ? -errno : 0;
}

static int target_move_into_place(const Target *target, const char *path) {
    struct stat st;
    int r = target_may_write(path, target->force);

    if (r < 0)
        return r;
    if (r == 0) {
        if (renameat2(AT_FDCWD, target->temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
            return 0;
        return errno == EINVAL || errno == ENOSYS ? target_move_by_link(target, path) : -errno;
    }
    if (target->layout != PD_LAYOUT_DIRECTORY && lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return rename(target->temporary, path) < 0 ? -errno : 0;
    if (renameat2(AT_FDCWD, target->temporary, AT_FDCWD, path, RENAME_EXCHANGE) < 0)
        return -errno;
    /* The handler must not remove the result from here on. */
    unfinished.armed = false;
    return target_remove_replaced(target->temporary);
}

static int target_sync_parent(const char *path, size_t parent) {
    _cleanup_free_ char *folder = parent > 0 ? strndup(path, parent) : strdup(".");
    _cleanup_close_ int fd = -1;

    if (!folder)
        return -ENOMEM;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int target_commit(Target *target) {
    _cleanup_free_ char *path = NULL;
    size_t length, parent;
    sigset_t old;
    int r;

    if (!target->temporary)
        return 0;
    parent = target_parent_length(target->path, &length);
    path = strndup(target->path, length);
    if (!path)
        return -ENOMEM;
    r = target_sync_all(target);
    if (r < 0)
        return r;
    target_block_signals(&old);
    r = target_move_into_place(target, path);
    if (r == 0) {
        unfinished.armed = false;
        free(target->temporary);
        target->temporary = NULL;
    }
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return r < 0 ? r : target_sync_parent(path, parent);
}

void target_done(Target *target) {
    sigset_t old;

    target_block_signals(&old);
    if (target->temporary && unfinished.armed) {
        target_remove_unfinished();
        unfinished.armed = false;
    }
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    free(target->temporary);
    target->temporary = NULL;
    if (target->fd >= 0 && target->fd != STDOUT_FILENO)
        (void)close(target->fd);
    target->fd = -1;
}

int target_complain(const Target *target, int error) {
    const char *path = target->path;

    switch (error) {
    case -EEXIST:
        return complain(STATUS_FAILED, "'%s' exists; give another name, or --force to replace it.",
                        path);
    case -ENOTEMPTY:
        return complain(
            STATUS_FAILED,
            "'%s' is a folder with other files than a recording; profctl does not replace it.",
            path);
    case -EINVAL:
        if (strcmp(path, "-") == 0)
            return complain(
                STATUS_FAILED,
                "Only the layout 'pipe' can be written to stdout; name a file for other layouts.");
        return complain(STATUS_FAILED,
                        "'%s' is neither a file nor a folder; profctl does not replace it.", path);
    case -ENOTTY:
        return complain(STATUS_FAILED,
                        "A recording cannot be written to a terminal; redirect stdout.");
    default:
        return complain(STATUS_FAILED, "Failed to write '%s': %s.", path, strerror(-error));
    }
}
