/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/build-id.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "scan/line.h"
#include "scan/mapping.h"
#include "scan/procmap.h"
#include "util/clock.h"

/*
 * A wrong build id is worse than none: symbols of another file would be believed. So each of the
 * ways to one proves that the file is the one that was mapped.
 *
 * While the process has it mapped, device and inode of the mapping say so, in the numbers of the
 * kernel's own records: PROCMAP_QUERY tells them together with the build id; without it, the file
 * is opened through the mapping, and the mapping looked at before and after. Device numbers of
 * stat() are another matter (btrfs and overlayfs invent them) and are not asked here.
 *
 * When the process or the mapping is gone only the path is left. What lies there now may be a
 * newer file with the inode number of the old, so that the number has to come with the same
 * generation, or with a change time from before we began. A mapping, too, can have given way to
 * that of a newer file with an old number, which is told by the generation where it is known.
 *
 * Files on FUSE are left alone: their server may never answer.
 */

#define IOCTL_GETVERSION _IOR('v', 1, long)

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

typedef struct Range {
    uint64_t start, end;
} Range;

struct BuildIdReader {
    Keeper *keeper;
    ProcessReader *processes;
    bool has_no_query; /* the kernel, older than 6.11 */
    int64_t began_s;   /* by the clock of files */
    int64_t offset_s;  /* of that clock from the one that never jumps */
    LineReader lines;
};

static int64_t seconds(clockid_t clock) {
    return (int64_t)(clock_ns(clock) / NS_PER_SECOND);
}

int build_id_reader_new(Keeper *keeper, ProcessReader *processes, BuildIdReader **ret) {
    BuildIdReader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->keeper = keeper;
    reader->processes = processes;
    reader->began_s = seconds(CLOCK_REALTIME);
    reader->offset_s = reader->began_s - seconds(CLOCK_BOOTTIME);
    *ret = reader;
    return 0;
}

BuildIdReader *build_id_reader_free(BuildIdReader *reader) {
    free(reader);
    return NULL;
}

static bool is_image(const MappedImage *image, uint64_t major, uint64_t minor, uint64_t inode) {
    return image->major == major && image->minor == minor && image->inode == inode;
}

/* -ESTALE: something else is there. -ENODATA: it is the image, and no build id was asked for or
 * found. -ENOTTY: the kernel does not know of this. */
static int query(int maps, const MappedImage *image, bool wants_id, Range *ret_range,
                 BuildId *ret) {
    BuildId id = {};
    ProcmapQuery q = {
        .address = image->start,
        .build_id_size = wants_id ? sizeof(id.bytes) : 0,
        .build_id_address = wants_id ? (uintptr_t)id.bytes : 0,
    };
    int r = procmap_query(maps, &q);

    if (r < 0)
        return r == -ENOENT ? -ESTALE : r;
    if (!is_image(image, q.major, q.minor, q.inode))
        return -ESTALE;
    *ret_range = (Range){.start = q.vma_start, .end = q.vma_end};
    if (q.build_id_size == 0 || q.build_id_size > sizeof(id.bytes))
        return -ENODATA;
    id.size = q.build_id_size;
    *ret = id;
    return 0;
}

/* Any mapping of the image, by the text of the maps. */
static int search(BuildIdReader *b, int maps, const MappedImage *image, Range *ret) {
    size_t size;
    PdMmap map;
    char *line;
    int r;

    if (lseek(maps, 0, SEEK_SET) < 0)
        return -errno;
    line_reader_init(&b->lines, maps);
    while ((r = line_reader_next(&b->lines, &line, &size)) > 0) {
        if (!mapping_parse_any(line, size, &map) ||
            !is_image(image, map.major, map.minor, map.inode))
            continue;
        *ret = (Range){.start = map.start, .end = map.start + map.length};
        return 0;
    }
    return r < 0 ? r : -ESTALE;
}

/* Where the image is mapped now: where it was, or anywhere. */
static int find(BuildIdReader *b, int maps, const MappedImage *image, Range *ret) {
    BuildId none;
    int r = b->has_no_query ? -ENOTTY : query(maps, image, false, ret, &none);

    if (r == -ENODATA)
        return 0;
    b->has_no_query |= r == -ENOTTY;
    return search(b, maps, image, ret);
}

static int read_file(int fd, BuildId *ret) {
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return -errno;
    return fs.f_type == FUSE_SUPER_MAGIC ? -EOPNOTSUPP : elf_build_id_of_fd(fd, ret);
}

/* The generation of an inode, where its file system tells it. */
static bool get_generation(int fd, uint32_t *ret) {
    /* The kernel writes an int, whatever the number of the ioctl says. */
    union {
        uint32_t value;
        long room;
    } version = {};

    if (ioctl(fd, IOCTL_GETVERSION, &version) < 0)
        return false;
    *ret = version.value;
    return true;
}

static bool is_other_generation(int fd, const MappedImage *image) {
    uint32_t generation;

    return image->generation != 0 && get_generation(fd, &generation) &&
           generation != (uint32_t)image->generation;
}

static int read_through_mapping(BuildIdReader *b, int maps, const MappedImage *image,
                                BuildId *ret) {
    _cleanup_close_ int fd = -1;
    Range before, after;
    int r = find(b, maps, image, &before);

    if (r == 0)
        r = keeper_open_mapped(b->keeper, image->pid, before.start, before.end, &fd);
    if (r == 0)
        r = find(b, maps, image, &after);
    if (r < 0)
        return r;
    if (before.start != after.start || before.end != after.end || is_other_generation(fd, image))
        return -ESTALE;
    return read_file(fd, ret);
}

static int ask_kernel(BuildIdReader *b, int maps, const MappedImage *image, BuildId *ret) {
    _cleanup_close_ int fd = -1;
    Range range;
    BuildId id;
    int r;

    /* Asked for a build id, the kernel reads the file, and would wait for FUSE, which has no
     * device of its own. */
    if (b->has_no_query || image->major == 0)
        return -ENOTTY;
    r = query(maps, image, true, &range, &id);
    b->has_no_query = r == -ENOTTY;
    if (r < 0)
        return r;
    if (image->generation != 0 &&
        keeper_open_mapped(b->keeper, image->pid, range.start, range.end, &fd) == 0 &&
        is_other_generation(fd, image))
        return -ESTALE;
    *ret = id;
    return 0;
}

/* Whether the file was there, as it is, before anything was mapped that we heard of. */
static bool is_old(const BuildIdReader *b, const struct stat *st) {
    int64_t offset_s = seconds(CLOCK_REALTIME) - seconds(CLOCK_BOOTTIME);

    return offset_s - b->offset_s <= 1 && b->offset_s - offset_s <= 1 &&
           st->st_ctim.tv_sec < b->began_s;
}

static bool is_same_file(const BuildIdReader *b, const MappedImage *image, int fd,
                         const struct stat *st) {
    uint32_t generation;

    if (!is_image(image, major(st->st_dev), minor(st->st_dev), st->st_ino))
        return false;
    if (image->generation != 0 && get_generation(fd, &generation))
        return generation == (uint32_t)image->generation;
    return is_old(b, st);
}

static int read_by_path(BuildIdReader *b, const MappedImage *image, BuildId *ret) {
    _cleanup_close_ int fd = -1;
    struct stat st;
    int r;

    /* Numbers of devices that stat() might invent, and clocks of other machines, prove nothing. */
    if (image->path[0] != '/' || image->major == 0)
        return -ESTALE;
    r = keeper_open_image(b->keeper, image->pid, image->path, &fd);
    if (r == -ESRCH || r == -ENOENT)
        r = keeper_open_image(b->keeper, (uint32_t)getpid(), image->path, &fd);
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return -errno;
    return is_same_file(b, image, fd, &st) ? read_file(fd, ret) : -ESTALE;
}

int build_id_reader_read(BuildIdReader *b, const MappedImage *image, BuildId *ret) {
    _cleanup_close_ int maps = -1;
    int r;

    if (image->inode == 0)
        return -ENODATA;
    if (process_reader_open_maps(b->processes, image->pid, &maps) < 0)
        return read_by_path(b, image, ret);
    r = ask_kernel(b, maps, image, ret);
    if (r < 0)
        r = read_through_mapping(b, maps, image, ret);
    return r == -ESTALE || r == -ESRCH ? read_by_path(b, image, ret) : r;
}
