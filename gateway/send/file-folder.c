/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/file-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * Writes profiles as files. The name of a file is made of the time of its interval, so an interval
 * that is sent again after a kill replaces its file and is there once. The position says that a
 * file is there, so the name is on the disk before it.
 */

static void file_folder_stamp(uint64_t ns, char *to, size_t size) {
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    unsigned fraction = (unsigned)(ns % NS_PER_SECOND);
    struct tm parts = {};
    size_t n;

    (void)gmtime_r(&seconds, &parts);
    n = strftime(to, size, "%Y%m%dT%H%M%S", &parts);
    (void)snprintf(to + n, size - n, fraction > 0 ? ".%09uZ" : "Z", fraction);
}

static int file_folder_name(const FileFolderItem *item, char *to, size_t size) {
    char stamp[64], number[32] = "";
    int n;

    file_folder_stamp(item->since_ns, stamp, sizeof(stamp));
    if (item->number != FILE_FOLDER_WHOLE)
        (void)snprintf(number, sizeof(number), "-%zu", item->number);
    n = snprintf(to, size, "%s-%s%s.pb.gz", item->name, stamp, number);
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int file_folder_write(const char *folder, const FileFolderItem *item, Bytes content) {
    _cleanup_close_ int dirfd = -1, fd = -1;
    char name[NAME_MAX], scratch[NAME_MAX + 1];
    int r = file_folder_name(item, name, sizeof(name));

    if (r < 0)
        return r;
    (void)snprintf(scratch, sizeof(scratch), ".%s", name);
    dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dirfd < 0)
        return -errno;
    fd = openat(dirfd, scratch, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    r = file_write_all(fd, content.data, content.size);
    if (r == 0 &&
        (fdatasync(fd) < 0 || renameat(dirfd, scratch, dirfd, name) < 0 || fsync(dirfd) < 0))
        r = -errno;
    if (r < 0)
        (void)unlinkat(dirfd, scratch, 0);
    return r;
}
