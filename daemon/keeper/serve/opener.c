/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/opener.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "keeper/rights/capability.h"
#include "keeper/serve/overlay.h"
#include "util/bytes.h"
#include "util/file.h"

/*
 * Paths of a request are resolved with openat2() below a folder that this file chose, and never
 * through a magic link. A file of a process is first examined through an O_PATH descriptor, because
 * opening a device or a FIFO can have effects. Only a regular file that is an ELF program or
 * library, or a module of the running kernel, is returned, so never a core dump. A file that a
 * process maps is returned regardless of who may read it. A path, which a recorder may invent,
 * gives no rights: it is resolved completely, from the root of the process on, as the recorder's
 * user without capabilities.
 *
 * The file in which a process names the code that it generates is the exception: its name is fixed,
 * so it is opened with the keeper's rights if it is a plain file of the user of the process.
 * Otherwise a link, or a mount, to another file would hand that file to readers of recordings.
 */

enum {
    STATUS_SIZE = 16 << 10, /* of /proc/PID/status, with a thousand groups of the user */
    CODE_MAP_BYTES_MAX = 64 << 20,
    JITDUMP_MAGIC = 0x4a695444,
};

static int opener_open_below(int folder, const char *path, uint64_t flags, uint64_t resolve) {
    struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = resolve | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

    return fd < 0 ? -errno : fd;
}

static int opener_open_plain(const char *path, int flags, int *ret_fd) {
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

/* A mount of our own that is attached nowhere. The usual access checks apply in it, but not the
 * mount options of the system's own /proc. */
static int opener_open_proc(int *ret_fd) {
    _cleanup_close_ int system = fsopen("proc", FSOPEN_CLOEXEC);
    int fd;

    if (system < 0 || fsconfig(system, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -errno;
    fd = fsmount(system, FSMOUNT_CLOEXEC,
                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    return 0;
}

int opener_file(const KeeperRequest *request, int *ret_fd) {
    switch ((KeeperFile)request->file) {
    case KEEPER_KALLSYMS:
        return opener_open_plain("/proc/kallsyms", O_RDONLY, ret_fd);
    case KEEPER_MODULES:
        return opener_open_plain("/proc/modules", O_RDONLY, ret_fd);
    case KEEPER_PROC:
        return opener_open_proc(ret_fd);
    default:
        return -EINVAL;
    }
}

/* Returns the ELF type, or -ENOEXEC if it is no ELF file. */
static int opener_read_elf_type(int fd) {
    uint8_t start[EI_NIDENT + sizeof(uint16_t)];

    if (pread(fd, start, sizeof(start), 0) != sizeof(start) || memcmp(start, ELFMAG, SELFMAG) != 0)
        return -ENOEXEC;
    return load_u16(start + EI_NIDENT,
                    (start[EI_DATA] == ELFDATA2MSB) != (__BYTE_ORDER == __BIG_ENDIAN));
}

static bool opener_is_module(int found) {
    static const char *const folders[] = {"/lib/modules/", "/usr/lib/modules/"};
    char path[64], target[PATH_MAX], folder[sizeof(struct utsname)];
    struct utsname system;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    n = readlink(path, target, sizeof(target) - 1);
    if (n < 0 || uname(&system) < 0)
        return false;
    target[n] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        snprintf(folder, sizeof(folder), "%s%s/", folders[i], system.release);
        if (strncmp(target, folder, strlen(folder)) == 0)
            return true;
    }
    return false;
}

static int64_t opener_ns_of(const struct statx_timestamp *t) {
    return t->tv_sec * 1000000000LL + t->tv_nsec;
}

/* Uses only what the kernel has cached: a file server may never answer. */
static int opener_identify(int found, KeeperFileId *ret) {
    struct statx st;

    if (statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
        return -errno;
    if (!S_ISREG(st.stx_mode))
        return -ENOEXEC;
    *ret = (KeeperFileId){.major = st.stx_dev_major,
                          .minor = st.stx_dev_minor,
                          .inode = st.stx_ino,
                          .size = st.stx_size,
                          .mtime_ns = opener_ns_of(&st.stx_mtime),
                          .ctime_ns = opener_ns_of(&st.stx_ctime)};
    return 0;
}

/* The generation of an inode, if the file system has one. The kernel writes an int, whatever the
 * number of the ioctl implies. */
static void opener_find_generation(int fd, KeeperFileId *id) {
    union {
        uint32_t value;
        long room;
    } version = {};

    id->has_generation = ioctl(fd, FS_IOC_GETVERSION, &version) == 0;
    id->generation = id->has_generation ? version.value : 0;
}

/*
 * A user's program serves FUSE and may never answer. It may also be below an overlay, which any
 * user can mount in a user namespace.
 */
static int opener_refuse_fuse(int found, uint32_t pid) {
    struct statfs system;

    if (fstatfs(found, &system) < 0)
        return -errno;
    if (system.f_type == OVERLAYFS_SUPER_MAGIC)
        return overlay_is_of_system(found, pid) ? 0 : -EOPNOTSUPP;
    return system.f_type == FUSE_SUPER_MAGIC ? -EOPNOTSUPP : 0;
}

/* found: an O_PATH descriptor of the file to examine. */
static int opener_open_elf(uint32_t pid, int found, KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int fd = -1;
    char path[64];
    KeeperFileId id;
    int r = opener_identify(found, &id);

    if (r == 0)
        r = opener_refuse_fuse(found, pid);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    r = opener_open_plain(path, O_RDONLY | O_NONBLOCK, &fd);
    if (r < 0)
        return r;
    r = opener_read_elf_type(fd);
    if (r < 0)
        return r;
    if (r != ET_EXEC && r != ET_DYN && !(r == ET_REL && opener_is_module(found)))
        return -ENOEXEC;
    opener_find_generation(fd, &id);
    *ret_id = id;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int opener_mapped(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int found = -1;
    char path[96];
    int r;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, request->pid,
             request->start, request->end);
    r = opener_open_plain(path, O_PATH, &found);
    return r < 0 ? r : opener_open_elf(request->pid, found, ret_id, ret_fd);
}

/* The root folder as the process sees it. */
static int opener_open_root(uint32_t pid, int *ret_fd) {
    char path[64];

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", pid);
    return opener_open_plain(path, O_PATH | O_DIRECTORY, ret_fd);
}

static int opener_open_by_path(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd) {
    _cleanup_close_ int root = -1, found = -1;
    int r = opener_open_root(request->pid, &root);

    if (r < 0)
        return r;
    found = opener_open_below(root, request->path, O_PATH, RESOLVE_IN_ROOT);
    return found < 0 ? found : opener_open_elf(request->pid, found, ret_id, ret_fd);
}

int opener_image(const KeeperRequest *request, KeeperFileId *ret_id, int *ret_fd) {
    int r = capabilities_rest();

    if (r < 0)
        return r;
    r = opener_open_by_path(request, ret_id, ret_fd);
    (void)capabilities_use();
    return r;
}

/* The user of a process. The owner of /proc/PID will not do: it is root for a process that made
 * itself not dumpable. -EACCES: it has several, so that its files do not show whose they are. */
static int opener_user_of(uint32_t pid, uid_t *ret) {
    static const char field[] = "\nUid:\t";
    char path[64], text[STATUS_SIZE];
    unsigned users[4];
    const char *found;
    int r;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
    r = file_read_text(path, text, sizeof(text));
    if (r < 0)
        return r;
    found = strstr(text, field);
    if (!found || sscanf(found + strlen(field), "%u\t%u\t%u\t%u", &users[0], &users[1], &users[2],
                         &users[3]) != 4)
        return -EBADMSG;
    for (size_t i = 1; i < ARRAY_SIZE(users); i++)
        if (users[i] != users[0])
            return -EACCES;
    *ret = users[0];
    return 0;
}

/* The user may have mounted anything in a namespace of his own, also a file of somebody else over
 * the one that is opened: so no mount is crossed below /tmp. */
static int opener_find_perf_map(const KeeperRequest *request, int *ret_found) {
    _cleanup_close_ int root = -1, folder = -1;
    char path[64];
    int r = opener_open_root(request->pid, &root);

    if (r < 0)
        return r;
    folder =
        opener_open_below(root, "tmp", O_PATH | O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
    if (folder < 0)
        return folder;
    r = opener_refuse_fuse(folder, request->pid);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "perf-%" PRIu32 ".map", request->tid);
    r = opener_open_below(folder, path, O_PATH,
                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
    if (r < 0)
        return r;
    *ret_found = r;
    return 0;
}

static int opener_check_owned(int found, uint32_t pid) {
    struct statx st;
    uid_t user;
    int r = opener_user_of(pid, &user);

    if (r < 0)
        return r;
    if (statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
        return -errno;
    if (!S_ISREG(st.stx_mode) || st.stx_nlink != 1 || st.stx_uid != user)
        return -EACCES;
    return st.stx_size > CODE_MAP_BYTES_MAX ? -EFBIG : 0;
}

/* In either byte order. */
static bool opener_is_jitdump(int fd) {
    uint32_t magic;

    return pread(fd, &magic, sizeof(magic), 0) == sizeof(magic) &&
           (magic == JITDUMP_MAGIC || magic == __builtin_bswap32(JITDUMP_MAGIC));
}

int opener_code_map(const KeeperRequest *request, int *ret_fd) {
    bool is_mapped = request->end > 0;
    _cleanup_close_ int found = -1, fd = -1;
    char path[96];
    int r;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, request->pid,
             request->start, request->end);
    r = is_mapped ? opener_open_plain(path, O_PATH, &found) : opener_find_perf_map(request, &found);
    if (r == 0)
        r = opener_refuse_fuse(found, request->pid);
    if (r == 0)
        r = opener_check_owned(found, request->pid);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
    r = opener_open_plain(path, O_RDONLY | O_NONBLOCK, &fd);
    if (r < 0)
        return r;
    if (is_mapped && !opener_is_jitdump(fd))
        return -EACCES;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int opener_tracefs(const KeeperHost *host, const KeeperRequest *request, int *ret_fd) {
    const char *path = request->path;
    bool is_folder = path[strlen(path) - 1] == '/';
    _cleanup_close_ int above = -1;
    int fd;

    if (host->tracefs < 0)
        return -ENOENT;
    /* The two files next to the events folder cannot be reached from inside it. */
    if (strncmp(path, "../", 3) == 0) {
        above = openat(host->tracefs, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        path += 3;
    }
    fd = opener_open_below(above >= 0 ? above : host->tracefs, path,
                           O_RDONLY | (is_folder ? O_DIRECTORY : 0),
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

int opener_cgroup(const KeeperHost *host, const KeeperRequest *request, int *ret_fd) {
    int fd;

    if (request->path[0] == '\0') {
        *ret_fd = -1;
        return 0;
    }
    if (host->cgroup < 0)
        return -EOPNOTSUPP;
    fd = opener_open_below(host->cgroup, request->path, O_RDONLY | O_DIRECTORY,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    return 0;
}

int opener_namespaces(const KeeperRequest *request, KeeperNamespace ret[KEEPER_NAMESPACES]) {
    static const char *const names[KEEPER_NAMESPACES] = {"net",  "uts", "ipc",   "pid",
                                                         "user", "mnt", "cgroup"};
    _cleanup_close_ int folder = -1;
    char path[64];
    int r;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns", request->pid);
    r = opener_open_plain(path, O_PATH | O_DIRECTORY, &folder);
    if (r < 0)
        return r;
    for (size_t i = 0; i < KEEPER_NAMESPACES; i++) {
        struct stat status;

        if (fstatat(folder, names[i], &status, 0) == 0)
            ret[i] = (KeeperNamespace){.dev = status.st_dev, .inode = status.st_ino};
        else if (errno != ENOENT)
            return -errno;
        else
            ret[i] = (KeeperNamespace){};
    }
    return 0;
}
