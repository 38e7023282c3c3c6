/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Loops around read, write and mkdir, which may do only a part of a request. */

static int file_read_whole(int fd, char *ret, size_t size) {
    size_t n = 0;

    assert(size > 0 && size <= INT_MAX);
    for (;;) {
        ssize_t k = read(fd, ret + n, size - n);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        if (k == 0)
            break;
        n += (size_t)k;
        if (n == size)
            return -EFBIG;
    }
    if (n > 0 && ret[n - 1] == '\n')
        n--;
    ret[n] = '\0';
    return (int)n;
}

int file_read_text(const char *path, char *ret, size_t size) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : file_read_whole(fd, ret, size);
}

int file_read_regular(const char *path, char *ret, size_t size) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
    return file_read_whole(fd, ret, size);
}

/* After a failed write: 0 if it is worth another try, or the negative errno. */
static int file_wait_writable(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    if (errno == EINTR)
        return 0;
    if (errno != EAGAIN)
        return -errno;
    return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

int file_write_all(int fd, const void *data, size_t n) {
    const char *p = data;

    while (n > 0) {
        ssize_t k = write(fd, p, n);
        int r = k < 0 ? file_wait_writable(fd) : 0;

        if (r < 0)
            return r;
        p += MAX(k, 0);
        n -= (size_t)MAX(k, 0);
    }
    return 0;
}

int file_write_all_at(int fd, const void *data, size_t n, uint64_t offset) {
    const char *p = data;

    while (n > 0) {
        ssize_t k = pwrite(fd, p, n, (off_t)offset);
        int r = k < 0 ? file_wait_writable(fd) : 0;

        if (r < 0)
            return r;
        p += MAX(k, 0);
        n -= (size_t)MAX(k, 0);
        offset += (uint64_t)MAX(k, 0);
    }
    return 0;
}

int64_t file_read_at(void *fd, uint64_t offset, void *to, size_t n) {
    ssize_t got;

    do
        got = pread(*(const int *)fd, to, n, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* Not every file system has files without a name. */
int file_open_unnamed(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char path[PATH_MAX];

    if (fd >= 0)
        return fd;
    if (snprintf(path, sizeof(path), "%s/.profd-XXXXXX", folder) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)unlink(path);
    return fd;
}

int file_make_folders(const char *path, unsigned mode) {
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n == 0 || n >= sizeof(part))
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return mkdir(part, mode) < 0 && errno != EEXIST ? -errno : 0;
}
