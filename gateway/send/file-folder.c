/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/file-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/file.h"
#include "util/macro.h"

/*
 * Writes profiles and recordings as files. The name of a file is made of the time of its interval,
 * so an interval that is sent again after a kill replaces its file and is there once. The position
 * says that a file is there, so the name is on the disk before it.
 */

enum { FILE_FOLDER_MODE = 0755 };

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

/* Makes the folders on the way to a file, but not the one that the configuration names: if that is
 * one of a file system which is not mounted, nothing is written to what lies below. */
static int file_folder_open(const char *folder, char *path) {
    _cleanup_close_ int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *slash = strrchr(path, '/');
    int r = 0, fd;

    if (root < 0)
        return -errno;
    *slash = '\0';
    if (slash > path + strlen(folder))
        r = file_make_folders(path, FILE_FOLDER_MODE);
    fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && fd < 0)
        fd = -errno;
    *slash = '/';
    return fd;
}

static int file_folder_fill(int dirfd, const char *scratch, const FileFolderPut *put) {
    _cleanup_close_ int fd =
        openat(dirfd, scratch, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    int r;

    if (fd < 0)
        return -errno;
    r = put->fill(put->userdata, fd);
    return r == 0 && fdatasync(fd) < 0 ? -errno : r;
}

/* PATH and the name of the file before it is whole, which is ".NAME" beside it. */
static int file_folder_paths(const char *folder, const char *path, char **ret, char **ret_scratch) {
    _cleanup_free_ char *whole = NULL, *scratch = NULL;

    if (asprintf(&whole, "%s/%s", folder, path) < 0)
        whole = NULL;
    if (whole && asprintf(&scratch, ".%s", strrchr(whole, '/') + 1) < 0)
        scratch = NULL;
    if (!scratch)
        return -ENOMEM;
    *ret = TAKE_PTR(whole);
    *ret_scratch = TAKE_PTR(scratch);
    return 0;
}

int file_folder_put(const FileFolderPut *put) {
    _cleanup_free_ char *path = NULL, *scratch = NULL;
    _cleanup_close_ int dirfd = -1;
    int r = file_folder_paths(put->folder, put->path, &path, &scratch);

    if (r < 0)
        return r;
    dirfd = file_folder_open(put->folder, path);
    if (dirfd < 0)
        return dirfd;
    r = file_folder_fill(dirfd, scratch, put);
    if (r == 0 && (renameat(dirfd, scratch, dirfd, scratch + 1) < 0 || fsync(dirfd) < 0))
        r = -errno;
    if (r < 0)
        (void)unlinkat(dirfd, scratch, 0);
    return r;
}

void file_folder_forget(const char *folder, const char *path) {
    _cleanup_free_ char *whole = NULL, *scratch = NULL;
    _cleanup_close_ int dirfd = -1;

    if (file_folder_paths(folder, path, &whole, &scratch) < 0)
        return;
    *strrchr(whole, '/') = '\0';
    dirfd = open(whole, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dirfd >= 0)
        (void)unlinkat(dirfd, scratch, 0);
}

static int file_folder_fill_bytes(void *userdata, int fd) {
    const Bytes *content = userdata;

    return file_write_all(fd, content->data, content->size);
}

int file_folder_write(const char *folder, const FileFolderItem *item, Bytes content) {
    char name[NAME_MAX];
    int r = file_folder_name(item, name, sizeof(name));

    return r < 0 ? r
                 : file_folder_put(&(FileFolderPut){.folder = folder,
                                                    .path = name,
                                                    .fill = file_folder_fill_bytes,
                                                    .userdata = &content});
}
