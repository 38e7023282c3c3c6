/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/image-file.h"

#include <errno.h>
#include <string.h>

#include "scan/device.h"
#include "scan/text/line.h"
#include "scan/text/mapping.h"
#include "util/clock.h"

/*
 * A wrong file is worse than none, because its symbols would be believed. So each way to open a
 * file proves that it is the mapped one.
 *
 * While the process maps it, device and inode of the mapping identify it, in the numbers of the
 * kernel's own records: the file is opened through the mapping, and the mapping is checked before
 * and, unless the file has its numbers, after. Device numbers from stat() may differ (btrfs and
 * overlayfs invent them). They have to do if mappings cannot be opened, as without root.
 *
 * When the process or the mapping is gone, only the path is left, and it only opens files that the
 * recorder's own user may read. The path may now lead to a newer file with the inode number of the
 * old one, so the generation must be the same too, or the change time must be from before profd
 * began. A mapping may also have been replaced by one of a newer file with a reused number, which
 * the generation shows if it is known.
 *
 * This code does not read files. A process of the keeper opens them: a file system that does not
 * answer delays us and our callers only until the timeout.
 */

#define PATHS_REST_NS (60 * NS_PER_SECOND)

typedef struct Range {
    uint64_t start, end;
} Range;

struct ImageOpener {
    Keeper *keeper;
    ProcessReader *processes;
    int64_t began_s;  /* in the clock of file times */
    int64_t offset_s; /* difference from that clock to the one that never steps */
    DeviceTable devices;
    uint64_t paths_after_ns; /* a path led to a file system that does not answer */
    LineReader lines;
};

static int64_t image_file_seconds(clockid_t clock) {
    return (int64_t)(clock_ns(clock) / NS_PER_SECOND);
}

int image_opener_new(Keeper *keeper, ProcessReader *processes, int proc, ImageOpener **ret) {
    ImageOpener *o = calloc(1, sizeof(*o));

    if (!o)
        return -ENOMEM;
    o->keeper = keeper;
    o->processes = processes;
    o->began_s = image_file_seconds(CLOCK_REALTIME);
    o->offset_s = o->began_s - image_file_seconds(CLOCK_BOOTTIME);
    device_table_init(&o->devices, proc, &o->lines);
    *ret = o;
    return 0;
}

ImageOpener *image_opener_free(ImageOpener *opener) {
    free(opener);
    return NULL;
}

static bool image_file_is_image(const MappedImage *image, uint64_t major, uint64_t minor,
                                uint64_t inode) {
    return image->major == major && image->minor == minor && image->inode == inode;
}

/* Finds the image among mappings of its process. -ESTALE: it is not one of them; -ETIMEDOUT: the
 * process is late. */
static int image_file_search(ImageOpener *o, const MappedImage *image, KeeperMaps among,
                             Range *ret) {
    uint64_t address = among == KEEPER_MAPS_AT ? image->start : 0;
    _cleanup_close_ int maps = -1;
    size_t size;
    PdMmap map;
    char *line;
    int r = process_reader_read_maps(o->processes, image->pid, among, address, &maps);

    if (r < 0)
        return r;
    line_reader_init(&o->lines, maps);
    while ((r = line_reader_next(&o->lines, &line, &size)) > 0) {
        if (!mapping_parse_any(line, size, &map) ||
            !image_file_is_image(image, map.major, map.minor, map.inode))
            continue;
        *ret = (Range){.start = map.start, .end = map.start + map.length};
        return 0;
    }
    return r < 0 ? r : -ESTALE;
}

/* Finds where the image is mapped now: at the old address, or anywhere. */
static int image_file_find(ImageOpener *o, const MappedImage *image, Range *ret) {
    int r = image_file_search(o, image, KEEPER_MAPS_AT, ret);

    return r == -ESTALE ? image_file_search(o, image, KEEPER_MAPS_ALL, ret) : r;
}

static Device image_file_device_of(const MappedImage *image) {
    return (Device){.major = image->major, .minor = image->minor};
}

static bool image_file_is_other_generation(const KeeperFileId *id, const MappedImage *image) {
    return image->generation != 0 && id->has_generation &&
           id->generation != (uint32_t)image->generation;
}

/*
 * Opens the path in the process's view or, if it has ended or belongs to another user, in ours; the
 * file found must prove to be the mapped one. Both open only files that our own user may read.
 */
static int image_file_open_by_path(ImageOpener *o, const MappedImage *image, KeeperFileId *ret_id,
                                   int *ret_fd) {
    int r = keeper_open_image(o->keeper, image->pid, image->path, ret_id, ret_fd);

    if (r == -ESRCH || r == -ENOENT || r == -EACCES)
        r = keeper_open_image(o->keeper, (uint32_t)getpid(), image->path, ret_id, ret_fd);
    return r;
}

/* Opens the path instead of the mapping; no other file gets its number while it is mapped. */
static int image_file_open_living_path(ImageOpener *o, const MappedImage *image,
                                       KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    KeeperFileId id;
    int r = image->path[0] == '/' ? image_file_open_by_path(o, image, &id, &fd) : -EACCES;

    if (r < 0)
        return r;
    if (!image_file_is_image(image, id.major, id.minor, id.inode))
        return -EACCES;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int image_file_open_mapping(ImageOpener *o, const MappedImage *image, KeeperFileId *ret_id,
                                   int *ret_fd) {
    _cleanup_close_ int fd = -1;
    Range before, after;
    bool by_path = false;
    KeeperFileId id;
    int r = image_file_find(o, image, &before);

    /* Maps that may not be read are as those of a process that has ended. */
    if (r == -EACCES || r == -EPERM || r == -ENOENT)
        return -ESRCH;
    if (r < 0)
        return r;
    r = keeper_open_mapped(o->keeper, image->pid, before.start, before.end, &id, &fd);
    by_path = r == -EPERM || r == -EACCES;
    if (by_path)
        r = image_file_open_living_path(o, image, &id, &fd);
    /* The opener may also have been killed. */
    if (r == -EIO)
        r = -EAGAIN;
    if (r == -ETIMEDOUT && image_file_find(o, image, &after) != -ETIMEDOUT) {
        image_opener_avoid(o, image);
        return -EHOSTDOWN;
    }
    after = before;
    /* A file that was opened through the mapping and has its numbers is the mapped one. */
    if (r == 0 && (by_path || !image_file_is_image(image, id.major, id.minor, id.inode)))
        r = image_file_find(o, image, &after);
    if (r < 0)
        return r;
    if (before.start != after.start || before.end != after.end ||
        image_file_is_other_generation(&id, image))
        return -ESTALE;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Whether the file already existed unchanged before the first mapping that we know of. */
static bool image_file_is_old(const ImageOpener *o, const KeeperFileId *id) {
    int64_t offset_s = image_file_seconds(CLOCK_REALTIME) - image_file_seconds(CLOCK_BOOTTIME);

    return offset_s - o->offset_s <= 1 && o->offset_s - offset_s <= 1 &&
           id->ctime_ns < o->began_s * (int64_t)NS_PER_SECOND;
}

static bool image_file_is_same_file(const ImageOpener *o, const MappedImage *image,
                                    const KeeperFileId *id) {
    if (!image_file_is_image(image, id->major, id->minor, id->inode))
        return false;
    if (image->generation != 0 && id->has_generation)
        return id->generation == (uint32_t)image->generation;
    return image_file_is_old(o, id);
}

static int image_file_open_path(ImageOpener *o, const MappedImage *image, KeeperFileId *ret_id,
                                int *ret_fd) {
    _cleanup_close_ int fd = -1;
    uint64_t now_ns = clock_monotonic_ns();
    KeeperFileId id;
    int r;

    /* Device numbers that stat() may invent, and clocks of other machines, prove nothing. */
    if (image->path[0] != '/' || image->major == 0)
        return -ESTALE;
    if (now_ns < o->paths_after_ns)
        return -EHOSTDOWN;
    r = image_file_open_by_path(o, image, &id, &fd);
    /* The path may lead to another device by now, so do not blame the image's device. */
    if (r == -ETIMEDOUT)
        o->paths_after_ns = now_ns + PATHS_REST_NS;
    if (r < 0)
        return r;
    if (!image_file_is_same_file(o, image, &id))
        return -ESTALE;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int image_opener_open(ImageOpener *o, const MappedImage *image, KeeperFileId *ret_id, int *ret_fd) {
    int r;

    if (image->inode == 0)
        return -ENODATA;
    if (device_is_avoided(&o->devices, image_file_device_of(image), image->pid))
        return -EHOSTDOWN;
    r = image_file_open_mapping(o, image, ret_id, ret_fd);
    /* A process that cannot be asked is as one that has ended. */
    if (r == -ESTALE || r == -ESRCH || r == -ETIMEDOUT)
        r = image_file_open_path(o, image, ret_id, ret_fd);
    return r;
}

void image_opener_avoid(ImageOpener *o, const MappedImage *image) {
    device_avoid(&o->devices, image_file_device_of(image));
}
