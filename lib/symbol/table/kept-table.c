/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/table/kept-table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "util/array.h"
#include "util/file.h"

/*
 * A file is a key and the image of a table. It is trusted as far as its folder: both must belong to
 * this user and to nobody else, because a mapped file must not shrink, and because the names are
 * shown as those of the program. Files are replaced by renaming, so that a mapped one stays whole.
 */

enum { NAME_MAX_BYTES = 64, SECONDS_PER_HOUR = 3600, SECONDS_PER_DAY = 86400 };

static const char suffix[] = ".names";

static bool kept_table_is_ours(int fd, mode_t kind, struct stat *ret) {
    return fstat(fd, ret) == 0 && (ret->st_mode & S_IFMT) == kind && ret->st_uid == geteuid() &&
           (ret->st_mode & 022) == 0;
}

static int kept_table_open(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && kept_table_is_ours(fd, S_IFDIR, &st))
        return fd;
    closep(&fd);
    return -ENOENT;
}

static bool kept_table_name(Bytes build_id, char ret[NAME_MAX_BYTES]) {
    if (build_id.size == 0 || build_id.size * 2 + sizeof(suffix) > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < build_id.size; i++)
        snprintf(ret + 2 * i, 3, "%02x", build_id.data[i]);
    memcpy(ret + 2 * build_id.size, suffix, sizeof(suffix));
    return true;
}

/* The time of a file is that of its last use, nearly. */
static void kept_table_touch(int fd, const struct stat *st) {
    if (time(NULL) - st->st_mtim.tv_sec > SECONDS_PER_HOUR)
        (void)futimens(fd, NULL);
}

static int kept_table_map(int fd, const TableKey *key, StoredTable *ret) {
    StoredTable table = {};
    struct stat st;
    void *map;
    int r = -ENOENT;

    if (!kept_table_is_ours(fd, S_IFREG, &st) || st.st_size <= (off_t)sizeof(*key))
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
    kept_table_touch(fd, &st);
    *ret = table;
    return 0;
}

int kept_table_load(const char *folder, Bytes build_id, const TableKey *key, StoredTable *ret) {
    _cleanup_close_ int dir = -1, fd = -1;
    char name[NAME_MAX_BYTES];

    if (!folder || !kept_table_name(build_id, name))
        return -ENOENT;
    dir = kept_table_open(folder);
    fd = dir >= 0 ? openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    return fd < 0 ? -ENOENT : kept_table_map(fd, key, ret);
}

void kept_table_save(const char *folder, Bytes build_id, const TableKey *key,
                     const StoredTable *table) {
    char name[NAME_MAX_BYTES], temporary[NAME_MAX_BYTES];
    _cleanup_close_ int dir = -1, fd = -1;

    if (!folder || table->image.size < KEPT_TABLE_SMALLEST || !kept_table_name(build_id, name) ||
        file_make_folders(folder, 0700) < 0)
        return;
    dir = kept_table_open(folder);
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

typedef struct KeptFile {
    char name[NAME_MAX_BYTES];
    time_t used;
    uint64_t bytes;
} KeptFile;

static int kept_table_compare(const void *a, const void *b) {
    const KeptFile *x = a, *y = b;

    return (x->used > y->used) - (x->used < y->used);
}

/* Files with longer names are none of ours. */
static KeptFile *kept_table_list(DIR *dir, size_t *ret_n, uint64_t *ret_bytes) {
    KeptFile *files = NULL, *file;

    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;

        if (strlen(e->d_name) >= NAME_MAX_BYTES ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
            !(file = array_grow(&files, ret_n)))
            continue;
        strcpy(file->name, e->d_name);
        file->used = st.st_mtim.tv_sec;
        file->bytes = (uint64_t)st.st_size;
        *ret_bytes += file->bytes;
    }
    return files;
}

void kept_table_trim(const char *folder, uint64_t bytes_max) {
    int fd = folder ? kept_table_open(folder) : -1;
    time_t oldest = time(NULL) - (time_t)KEPT_TABLE_DAYS * SECONDS_PER_DAY;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    _cleanup_free_ KeptFile *files = NULL;
    uint64_t bytes = 0;
    size_t n = 0;

    if (!dir) {
        closep(&fd);
        return;
    }
    files = kept_table_list(dir, &n, &bytes);
    if (n > 0)
        qsort(files, n, sizeof(*files), kept_table_compare);
    for (size_t i = 0; i < n; i++) {
        if (files[i].used >= oldest && bytes <= bytes_max && n - i <= KEPT_TABLE_FILES_MAX)
            break;
        (void)unlinkat(fd, files[i].name, 0);
        bytes -= files[i].bytes;
    }
    (void)closedir(dir);
}
