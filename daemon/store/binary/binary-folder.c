/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/binary/binary-private.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "util/clock.h"
#include "util/file.h"

/*
 * The layout: .build-id/xx/REST/{elf,vdso,kallsyms} and maps/PID-START.map, each folder opened
 * below the one above it, without following links. When an entry was used last is the time of its
 * folder, which belongs to the recorder, while the file in it belongs to root. A map has no folder,
 * so it is as old as its content.
 */

enum { PIECE = 64 << 10 };

static int binary_folder_open_one(BinaryStore *b, int parent, const char *name, int *fd) {
    int opened, r = dirfd_open_folder(parent, name, &opened);

    if (r < 0)
        return r;
    seal_give(&b->store->seal, opened, name, false);
    closep(fd);
    *fd = opened;
    return 0;
}

int binary_folder_open(BinaryStore *b) {
    int folder = store_reopen_binaries(b->store, b->folder), r = 0;

    if (folder == -EALREADY)
        return 0;
    if (folder < 0)
        return folder;
    closep(&b->folder);
    b->folder = folder;
    r = binary_folder_open_one(b, b->folder, ".build-id", &b->ids);
    return r < 0 ? r : binary_folder_open_one(b, b->folder, "maps", &b->maps);
}

static void binary_folder_split(const char *name, char ret_first[3], const char **ret_rest) {
    memcpy(ret_first, name, 2);
    ret_first[2] = '\0';
    *ret_rest = name + 2;
}

static int binary_folder_enter(BinaryStore *b, int parent, const char *name, bool make, int *ret) {
    int fd = -1, r;

    if (make) {
        r = binary_folder_open_one(b, parent, name, &fd);
        if (r < 0)
            return r;
    } else
        fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    *ret = fd;
    return 0;
}

int binary_folder_of(BinaryStore *b, const char *name, BinaryKind kind, bool make, int *ret_fd,
                     char ret_file[BINARY_NAME_MAX + 8]) {
    _cleanup_close_ int above = -1;
    const char *rest;
    char first[3];
    int r;

    disk_touch(__func__);
    if (kind == BINARY_MAP) {
        snprintf(ret_file, BINARY_NAME_MAX + 8, "%s.map", name);
        *ret_fd = fcntl(b->maps, F_DUPFD_CLOEXEC, 3);
        return *ret_fd < 0 ? -errno : 0;
    }
    binary_folder_split(name, first, &rest);
    snprintf(ret_file, BINARY_NAME_MAX + 8, "%s", binary_kind_name(kind));
    r = binary_folder_enter(b, b->ids, first, make, &above);
    return r < 0 ? r : binary_folder_enter(b, above, rest, make, ret_fd);
}

static int binary_folder_copy(int from, int to, uint64_t bytes) {
    uint8_t piece[PIECE];

    for (uint64_t at = 0; at < bytes;) {
        ssize_t n = pread(from, piece, MIN(sizeof(piece), bytes - at), (off_t)at);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        r = file_write_all(to, piece, (size_t)n);
        if (r < 0)
            return r;
        at += (uint64_t)n;
    }
    return 0;
}

int binary_folder_write(BinaryStore *b, int folder, const char *file, int from, uint64_t bytes) {
    char scratch[DIRFD_SCRATCH_MAX];
    _cleanup_close_ int fd = dirfd_begin_file(folder, file, scratch);
    int r;

    if (fd < 0)
        return fd;
    r = binary_folder_copy(from, fd, bytes);
    if (r == 0 && fdatasync(fd) < 0)
        r = -errno;
    if (r == 0)
        seal_give(&b->store->seal, fd, file, false);
    return dirfd_end_file(folder, file, scratch, r);
}

int binary_folder_remove(BinaryStore *b, const BinaryEntry *entry) {
    _cleanup_close_ int above = -1;
    const char *rest;
    char first[3], file[BINARY_NAME_MAX + 8];
    int r;

    disk_touch(__func__);
    if (entry->kind == BINARY_MAP) {
        snprintf(file, sizeof(file), "%s.map", entry->name);
        return unlinkat(b->maps, file, 0) < 0 && errno != ENOENT ? -errno : 0;
    }
    binary_folder_split(entry->name, first, &rest);
    r = binary_folder_enter(b, b->ids, first, false, &above);
    if (r == 0)
        r = dirfd_remove(above, rest);
    /* It may hold others. */
    (void)unlinkat(b->ids, first, AT_REMOVEDIR);
    return r == -ENOENT ? 0 : r;
}

int binary_folder_use(BinaryStore *b, const BinaryEntry *entry) {
    const struct timespec times[] = {
        {.tv_nsec = UTIME_OMIT},
        clock_timespec(entry->used_real_ns),
    };
    char file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int fd = -1;
    int r;

    if (entry->kind == BINARY_MAP)
        return 0;
    r = binary_folder_of(b, entry->name, entry->kind, false, &fd, file);
    return r == 0 && futimens(fd, times) < 0 ? -errno : r;
}

int binary_folder_measure(BinaryStore *b, const BinaryEntry *entry, uint64_t *ret_bytes) {
    char first[3], file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int above = -1;
    const char *rest;
    bool is_folder;
    int r;

    if (entry->kind == BINARY_MAP) {
        snprintf(file, sizeof(file), "%s.map", entry->name);
        return dirfd_measure(b->maps, file, ret_bytes, &is_folder);
    }
    binary_folder_split(entry->name, first, &rest);
    r = binary_folder_enter(b, b->ids, first, false, &above);
    return r < 0 ? r : dirfd_measure(above, rest, ret_bytes, &is_folder);
}
