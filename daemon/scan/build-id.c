/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/build-id.h"

#include <errno.h>
#include <string.h>

#include "scan/device.h"
#include "scan/elf-cache.h"
#include "scan/elf-helper.h"
#include "scan/line.h"
#include "scan/mapping.h"
#include "scan/procmap.h"
#include "util/clock.h"

/*
 * A wrong build id is worse than none: symbols of another file would be believed. So each of the
 * ways to one proves that the file is the one that was mapped.
 *
 * While the process has it mapped, device and inode of the mapping say so, in the numbers of the
 * kernel's own records: the file is opened through the mapping, and the mapping looked at before
 * and after. Device numbers of stat() are another matter (btrfs and overlayfs invent them) and
 * count only where mappings cannot be opened, as without root, and the path has to do.
 *
 * When the process or the mapping is gone only the path is left, and it only opens what the
 * recorder's own user may read. What lies there now may be a newer file with the inode number of
 * the old, so that the number has to come with the same generation, or with a change time from
 * before we began. A mapping, too, can have given way to that of a newer file with an old number,
 * which is told by the generation where it is known.
 *
 * The kernel would read the build id for us (PROCMAP_QUERY), but it reads all the notes that a file
 * claims to have, in one piece that nothing ends. So profd-elf reads it, and a descriptor is only
 * ever passed on here: a file system that does not answer holds up neither us nor those that wait
 * for us for longer than it takes to notice.
 */

#define PATHS_REST_NS (60 * NS_PER_SECOND)

typedef struct Range {
    uint64_t start, end;
} Range;

struct BuildIdReader {
    Keeper *keeper;
    ProcessReader *processes;
    bool has_no_query; /* the kernel, older than 6.11 */
    int64_t began_s;   /* by the clock of files */
    int64_t offset_s;  /* of that clock from the one that never jumps */
    ElfHelper *helper;
    ElfCache cache;
    DeviceTable devices;
    uint64_t paths_after_ns; /* a path led to a file system that does not answer */
    LineReader lines;
};

static int64_t build_id_seconds(clockid_t clock) {
    return (int64_t)(clock_ns(clock) / NS_PER_SECOND);
}

int build_id_reader_new(Keeper *keeper, ProcessReader *processes, int proc, BuildIdReader **ret) {
    _cleanup_(build_id_reader_freep) BuildIdReader *reader = calloc(1, sizeof(*reader));
    int r;

    if (!reader)
        return -ENOMEM;
    reader->keeper = keeper;
    reader->processes = processes;
    reader->began_s = build_id_seconds(CLOCK_REALTIME);
    reader->offset_s = reader->began_s - build_id_seconds(CLOCK_BOOTTIME);
    device_table_init(&reader->devices, proc, &reader->lines);
    r = elf_helper_new(keeper, proc, &reader->helper);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(reader);
    return 0;
}

BuildIdReader *build_id_reader_free(BuildIdReader *reader) {
    if (!reader)
        return NULL;
    elf_helper_free(reader->helper);
    free(reader);
    return NULL;
}

uint64_t build_id_reader_ready_ns(const BuildIdReader *reader) {
    return elf_helper_ready_ns(reader->helper);
}

bool build_id_reader_lacks_elf(const BuildIdReader *reader) {
    return elf_helper_is_missing(reader->helper);
}

uint64_t build_id_reader_cpu_ns(const BuildIdReader *reader) {
    return elf_helper_cpu_ns(reader->helper);
}

static bool build_id_is_image(const MappedImage *image, uint64_t major, uint64_t minor,
                              uint64_t inode) {
    return image->major == major && image->minor == minor && image->inode == inode;
}

/* -ESTALE: something else is there. -ENOTTY: the kernel does not know of this. */
static int build_id_query(int maps, const MappedImage *image, Range *ret) {
    ProcmapQuery q = {.address = image->start};
    int r = procmap_query(maps, &q);

    if (r < 0)
        return r == -ENOENT ? -ESTALE : r;
    if (!build_id_is_image(image, q.major, q.minor, q.inode))
        return -ESTALE;
    *ret = (Range){.start = q.vma_start, .end = q.vma_end};
    return 0;
}

/* Any mapping of the image, by the text of the maps. */
static int build_id_search(BuildIdReader *b, int maps, const MappedImage *image, Range *ret) {
    size_t size;
    PdMmap map;
    char *line;
    int r;

    if (lseek(maps, 0, SEEK_SET) < 0)
        return -errno;
    line_reader_init(&b->lines, maps);
    while ((r = line_reader_next(&b->lines, &line, &size)) > 0) {
        if (!mapping_parse_any(line, size, &map) ||
            !build_id_is_image(image, map.major, map.minor, map.inode))
            continue;
        *ret = (Range){.start = map.start, .end = map.start + map.length};
        return 0;
    }
    return r < 0 ? r : -ESTALE;
}

/* Where the image is mapped now: where it was, or anywhere. */
static int build_id_find(BuildIdReader *b, int maps, const MappedImage *image, Range *ret) {
    int r = b->has_no_query ? -ENOTTY : build_id_query(maps, image, ret);

    if (r == 0)
        return 0;
    b->has_no_query |= r == -ENOTTY;
    return build_id_search(b, maps, image, ret);
}

static Device build_id_device_of(const MappedImage *image) {
    return (Device){.major = image->major, .minor = image->minor};
}

/* What never changes as long as the file does not. */
static bool build_id_is_final(int r) {
    return r == 0 || r == -ENODATA || r == -ENOEXEC || r == -ECANCELED || r == -ENOMEM;
}

static int build_id_read_file(BuildIdReader *b, const MappedImage *image, const KeeperFileId *id,
                              int fd, BuildId *ret) {
    const ElfFact *fact = elf_cache_find(&b->cache, id);
    int r;

    if (fact) {
        *ret = fact->build_id;
        return fact->result;
    }
    r = elf_helper_build_id(b->helper, fd, ret);
    if (build_id_is_final(r))
        elf_cache_add(&b->cache, id, r, ret);
    if (r == -ETIMEDOUT)
        device_avoid(&b->devices, build_id_device_of(image));
    return r;
}

static bool build_id_is_other_generation(const KeeperFileId *id, const MappedImage *image) {
    return image->generation != 0 && id->has_generation &&
           id->generation != (uint32_t)image->generation;
}

/*
 * As the process sees the path, or, where it ended or is another user's, as we see it: whatever is
 * there must prove to be the file that was mapped. Either opens only what our own user may read.
 */
static int build_id_open_by_path(BuildIdReader *b, const MappedImage *image, KeeperFileId *ret_id,
                                 int *ret_fd) {
    int r = keeper_open_image(b->keeper, image->pid, image->path, ret_id, ret_fd);

    if (r == -ESRCH || r == -ENOENT || r == -EACCES)
        r = keeper_open_image(b->keeper, (uint32_t)getpid(), image->path, ret_id, ret_fd);
    return r;
}

/* Opens the path instead of the mapping; while the file is mapped nobody gets its number. */
static int build_id_open_living_path(BuildIdReader *b, const MappedImage *image,
                                     KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    KeeperFileId id;
    int r = image->path[0] == '/' ? build_id_open_by_path(b, image, &id, &fd) : -EACCES;

    if (r < 0)
        return r;
    if (!build_id_is_image(image, id.major, id.minor, id.inode))
        return -EACCES;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static int build_id_open_mapping(BuildIdReader *b, int maps, const MappedImage *image,
                                 KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    Range before, after;
    KeeperFileId id;
    int r = build_id_find(b, maps, image, &before);

    if (r < 0)
        return r;
    r = keeper_open_mapped(b->keeper, image->pid, before.start, before.end, &id, &fd);
    if (r == -EPERM || r == -EACCES)
        r = build_id_open_living_path(b, image, &id, &fd);
    /* Also when the opener was killed. */
    if (r == -EIO)
        r = -EAGAIN;
    if (r == -ETIMEDOUT)
        device_avoid(&b->devices, build_id_device_of(image));
    if (r == 0)
        r = build_id_find(b, maps, image, &after);
    if (r < 0)
        return r;
    if (before.start != after.start || before.end != after.end ||
        build_id_is_other_generation(&id, image))
        return -ESTALE;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* Whether the file was there, as it is, before anything was mapped that we heard of. */
static bool build_id_is_old(const BuildIdReader *b, const KeeperFileId *id) {
    int64_t offset_s = build_id_seconds(CLOCK_REALTIME) - build_id_seconds(CLOCK_BOOTTIME);

    return offset_s - b->offset_s <= 1 && b->offset_s - offset_s <= 1 &&
           id->ctime_ns < b->began_s * (int64_t)NS_PER_SECOND;
}

static bool build_id_is_same_file(const BuildIdReader *b, const MappedImage *image,
                                  const KeeperFileId *id) {
    if (!build_id_is_image(image, id->major, id->minor, id->inode))
        return false;
    if (image->generation != 0 && id->has_generation)
        return id->generation == (uint32_t)image->generation;
    return build_id_is_old(b, id);
}

static int build_id_open_path(BuildIdReader *b, const MappedImage *image, KeeperFileId *ret_id,
                              int *ret_fd) {
    _cleanup_close_ int fd = -1;
    uint64_t now_ns = clock_monotonic_ns();
    KeeperFileId id;
    int r;

    /* Numbers of devices that stat() might invent, and clocks of other machines, prove nothing. */
    if (image->path[0] != '/' || image->major == 0)
        return -ESTALE;
    if (now_ns < b->paths_after_ns)
        return -EHOSTDOWN;
    r = build_id_open_by_path(b, image, &id, &fd);
    /* The device of the image is not to blame for where its path leads now. */
    if (r == -ETIMEDOUT)
        b->paths_after_ns = now_ns + PATHS_REST_NS;
    if (r < 0)
        return r;
    if (!build_id_is_same_file(b, image, &id))
        return -ESTALE;
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int build_id_reader_read(BuildIdReader *b, const MappedImage *image, BuildId *ret) {
    _cleanup_close_ int maps = -1, fd = -1;
    KeeperFileId id;
    int r;

    if (image->inode == 0)
        return -ENODATA;
    if (device_is_avoided(&b->devices, build_id_device_of(image), image->pid))
        return -EHOSTDOWN;
    r = process_reader_open_maps(b->processes, image->pid, &maps) < 0
            ? -ESRCH
            : build_id_open_mapping(b, maps, image, &id, &fd);
    if (r == -ESTALE || r == -ESRCH)
        r = build_id_open_path(b, image, &id, &fd);
    return r < 0 ? r : build_id_read_file(b, image, &id, fd, ret);
}
