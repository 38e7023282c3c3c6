/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/find/open-regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "util/clock.h"
#include "util/macro.h"

/* A recording may name any path, and to open a device can already do something. So the file is
 * found first, looked at, and only then opened. */

int open_regular(const char *path, int *ret_fd, FileIdentity *ret) {
    _cleanup_close_ int place = -1, fd = -1;
    char name[32];
    struct stat st;

    place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0 || fstat(place, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", place);
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    *ret = (FileIdentity){
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = (uint64_t)st.st_size,
        .modified_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)st.st_mtim.tv_nsec,
    };
    *ret_fd = TAKE_FD(fd);
    return 0;
}
