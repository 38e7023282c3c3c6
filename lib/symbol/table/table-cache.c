/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/table-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "util/file.h"

/*
 * A file is a key and the image of a table. It is trusted as far as its folder: both must belong to
 * this user and to nobody else, because a mapped file must not shrink, and because the names are
 * shown as those of the program. Files are replaced by renaming, so that a mapped one stays whole.
 */

enum { NAME_MAX_BYTES = 64, SECONDS_PER_DAY = 86400 };

static const char suffix[] = ".names";

static bool table_cache_is_ours(int fd, mode_t kind, struct stat *ret) {
    return fstat(fd, ret) == 0 && (ret->st_mode & S_IFMT) == kind && ret->st_uid == geteuid() &&
           (ret->st_mode & 022) == 0;
}

static int table_cache_open(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && table_cache_is_ours(fd, S_IFDIR, &st))
        return fd;
    closep(&fd);
    return -ENOENT;
}

static bool table_cache_name(Bytes build_id, char ret[NAME_MAX_BYTES]) {
    if (build_id.size == 0 || build_id.size * 2 + sizeof(suffix) > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < build_id.size; i++)
        snprintf(ret + 2 * i, 3, "%02x", build_id.data[i]);
    memcpy(ret + 2 * build_id.size, suffix, sizeof(suffix));
    return true;
}

/* The time of a file is that of its last use, by days. */
static void table_cache_touch(int fd, const struct stat *st) {
    if (time(NULL) - st->st_mtim.tv_sec > SECONDS_PER_DAY)
        (void)futimens(fd, NULL);
}

static int table_cache_map(int fd, const TableKey *key, StoredTable *ret) {
    StoredTable table = {};
    struct stat st;
    void *map;
    int r = -ENOENT;

    if (!table_cache_is_ours(fd, S_IFREG, &st) || st.st_size <= (off_t)sizeof(*key))
        return -ENOENT;
    map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    table.map = map;
    table.map_size = (size_t)st.st_size;
    if (memcmp(map, key, sizeof(*key)) == 0)
        r = name_table_open((Bytes){.data = (const uint8_t *)map + sizeof(*key),
                                    .size = table.map_size - sizeof(*key)},
                            &table.names);
    if (r < 0) {
        stored_table_done(&table);
        return -ENOENT;
    }
    table_cache_touch(fd, &st);
    *ret = table;
    return 0;
}

int table_cache_load(const char *folder, Bytes build_id, const TableKey *key, StoredTable *ret) {
    _cleanup_close_ int dir = -1, fd = -1;
    char name[NAME_MAX_BYTES];

    if (!folder || !table_cache_name(build_id, name))
        return -ENOENT;
    dir = table_cache_open(folder);
    fd = dir >= 0 ? openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    return fd < 0 ? -ENOENT : table_cache_map(fd, key, ret);
}

void table_cache_save(const char *folder, Bytes build_id, const TableKey *key,
                      const StoredTable *table) {
    char name[NAME_MAX_BYTES], temporary[NAME_MAX_BYTES];
    _cleanup_close_ int dir = -1, fd = -1;

    if (!folder || table->image.size < TABLE_CACHE_SMALLEST || !table_cache_name(build_id, name) ||
        file_make_folders(folder, 0700) < 0)
        return;
    dir = table_cache_open(folder);
    if (dir < 0)
        return;
    snprintf(temporary, sizeof(temporary), ".%d-%p", (int)getpid(), (const void *)table);
    (void)unlinkat(dir, temporary, 0);
    fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    if (file_write_all(fd, key, sizeof(*key)) < 0 ||
        file_write_all(fd, table->image.data, table->image.size) < 0 ||
        renameat(dir, temporary, dir, name) < 0)
        (void)unlinkat(dir, temporary, 0);
}

void table_cache_trim(const char *folder) {
    int fd = folder ? table_cache_open(folder) : -1;
    time_t oldest = time(NULL) - (time_t)TABLE_CACHE_DAYS * SECONDS_PER_DAY;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    size_t n = 0;

    if (!dir) {
        closep(&fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;

        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (++n > TABLE_CACHE_FILES_MAX || st.st_mtim.tv_sec < oldest)
            (void)unlinkat(fd, e->d_name, 0);
    }
    (void)closedir(dir);
}
