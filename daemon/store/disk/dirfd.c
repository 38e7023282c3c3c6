/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/dirfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/disk.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * The store's access to the file system. Every path is a single name relative to a descriptor, so
 * nobody can replace a parent folder while the name is used.
 */

enum { READ_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

int dirfd_open_file(int folder, const char *name, struct stat *ret_st) {
    _cleanup_close_ int fd = openat(folder, name, READ_FLAGS);

    disk_touch(__func__);
    if (fd < 0)
        return errno == ELOOP ? -EBADMSG : -errno;
    if (fstat(fd, ret_st) < 0)
        return -errno;
    return S_ISREG(ret_st->st_mode) ? TAKE_FD(fd) : -EBADMSG;
}

int dirfd_read_fd(int fd, size_t max, Buffer *ret) {
    struct stat st;
    uint8_t *p;

    disk_touch(__func__);
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size > max)
        return -EFBIG;
    p = buffer_reserve(ret, (size_t)st.st_size + 1);
    if (!p)
        return -ENOMEM;
    for (;;) {
        size_t at = (size_t)(p - ret->data) - ret->size;
        ssize_t n = pread(fd, p, (size_t)st.st_size - at, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        p += n;
    }
    buffer_commit(ret, (size_t)(p - ret->data) - ret->size);
    return 0;
}

int dirfd_read(int folder, const char *name, size_t max, Buffer *ret) {
    struct stat st;
    _cleanup_close_ int fd = dirfd_open_file(folder, name, &st);

    disk_touch(__func__);
    return fd < 0 ? fd : dirfd_read_fd(fd, max, ret);
}

int dirfd_begin_file(int folder, const char *name, char ret_scratch[DIRFD_SCRATCH_MAX]) {
    int fd;

    disk_touch(__func__);
    if (snprintf(ret_scratch, DIRFD_SCRATCH_MAX, ".%s" DIRFD_SCRATCH, name) >= DIRFD_SCRATCH_MAX)
        return -ENAMETOOLONG;
    if (unlinkat(folder, ret_scratch, 0) < 0 && errno != ENOENT)
        return -errno;
    fd = openat(folder, ret_scratch, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                DIRFD_FILE_MODE);
    return fd < 0 ? -errno : fd;
}

int dirfd_end_file(int folder, const char *name, const char *scratch, int r) {
    if (r == 0 && renameat(folder, scratch, folder, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(folder, scratch, 0);
    return r;
}

int dirfd_write(int folder, const char *name, Bytes bytes) {
    _cleanup_close_ int fd = -1;
    char scratch[DIRFD_SCRATCH_MAX];
    int r;

    fd = dirfd_begin_file(folder, name, scratch);
    if (fd < 0)
        return fd;
    r = file_write_all(fd, bytes.data, bytes.size);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    return dirfd_end_file(folder, name, scratch, r);
}

int dirfd_open_folder(int parent, const char *name, int *ret_fd) {
    int fd;

    disk_touch(__func__);
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* To make a folder waits for a frozen disk, even if there is one already. */
    if (fd < 0 && errno == ENOENT) {
        if (mkdirat(parent, name, DIRFD_FOLDER_MODE) < 0 && errno != EEXIST)
            return -errno;
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

static bool dirfd_is_part_name(const char *file) {
    size_t n = strlen(file);

    return strncmp(file, "data", 4) == 0 && (n == 4 || (file[4] == '.' && n > 5 && n < 10 &&
                                                        strspn(file + 5, "0123456789") == n - 5));
}

int dirfd_open_part(int folder, const char *name, bool directory, const char *file, int *ret_fd,
                    uint64_t *ret_bytes) {
    _cleanup_close_ int inner = -1;
    struct stat st;
    int fd;

    disk_touch(__func__);
    if (directory ? *file != '\0' && !dirfd_is_part_name(file) : *file != '\0')
        return -ENOENT;
    if (directory) {
        inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            return -errno;
    }
    fd = directory ? dirfd_open_file(inner, *file ? file : "data", &st)
                   : dirfd_open_file(folder, name, &st);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

/* Uses a new descriptor, because fdopendir() takes ownership of it and a duplicate would share its
 * position. */
static DIR *dirfd_list(int folder, const char *name) {
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void)close(fd);
    return dir;
}

static uint64_t dirfd_taken(const struct stat *st) {
    return MAX((uint64_t)st->st_size, (uint64_t)st->st_blocks * 512);
}

int dirfd_measure(int folder, const char *name, uint64_t *ret_bytes, bool *ret_is_folder) {
    _cleanup_closedir_ DIR *dir = NULL;
    struct stat st;
    uint64_t bytes;

    disk_touch(__func__);
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EBADMSG;
    bytes = dirfd_taken(&st);
    if (S_ISDIR(st.st_mode)) {
        dir = dirfd_list(folder, name);
        if (!dir)
            return -errno;
        for (struct dirent *e; (e = readdir(dir));) {
            struct stat file;

            if (e->d_name[0] != '.' &&
                fstatat(dirfd(dir), e->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0)
                bytes += dirfd_taken(&file);
        }
    }
    *ret_bytes = bytes;
    *ret_is_folder = S_ISDIR(st.st_mode);
    return 0;
}

static bool dirfd_is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int dirfd_remove(int folder, const char *name) {
    _cleanup_closedir_ DIR *dir = NULL;

    disk_touch(__func__);
    if (unlinkat(folder, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    dir = dirfd_list(folder, name);
    if (!dir)
        return -errno;
    for (struct dirent *e; (e = readdir(dir));)
        if (!dirfd_is_dots(e->d_name) && unlinkat(dirfd(dir), e->d_name, 0) < 0 && errno != ENOENT)
            return -errno;
    return unlinkat(folder, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int dirfd_rename(int folder, const char *from, const char *to) {
    disk_touch(__func__);
    if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* Not atomic, but only profd creates such names, and the store's lock excludes other
     * daemons. */
    if (faccessat(folder, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return -EEXIST;
    return renameat(folder, from, folder, to) < 0 ? -errno : 0;
}

int dirfd_each_file(int folder, int (*fn)(void *userdata, const char *name, int fd),
                    void *userdata) {
    _cleanup_closedir_ DIR *dir = dirfd_list(folder, ".");
    int r = 0;

    disk_touch(__func__);
    if (!dir)
        return -errno;
    for (struct dirent *e; r >= 0 && (e = readdir(dir));) {
        struct stat st;
        _cleanup_close_ int fd =
            dirfd_is_dots(e->d_name) ? -1 : dirfd_open_file(folder, e->d_name, &st);

        if (fd >= 0)
            r = fn(userdata, e->d_name, fd);
    }
    return r;
}
