/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/overlay.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/macro.h"

/*
 * An overlay passes each request on to the file system below it, which may be a FUSE server of the
 * user who has mounted the overlay: then opening, reading and even closing a file can last for
 * ever. Nothing shows what is below. But the mount is in the table of a mount namespace, and only
 * who has rights over the user namespace that owns it can put it there: for those of containers
 * that is root. The namespace of a container with users of its own belongs to these, but its
 * overlay was mounted outside, where we see it.
 */

typedef struct OverlayMount {
    uint64_t id;
    unsigned major, minor; /* of the file system, which are those of no other */
} OverlayMount;

/* Whether a line of the table is of the mount; `by_id`, or else by its file system. Fills in the
 * latter. "ID PARENT MAJOR:MINOR …" */
static bool overlay_is_line_of(const char *line, bool by_id, OverlayMount *mount) {
    unsigned major, minor;
    uint64_t id;

    if (sscanf(line, "%" SCNu64 " %*u %u:%u ", &id, &major, &minor) != 3)
        return false;
    if (!by_id)
        return major == mount->major && minor == mount->minor;
    if (id != mount->id)
        return false;
    mount->major = major;
    mount->minor = minor;
    return true;
}

/* The start of a line is enough; what a user has named a mount is behind it. `folder` has the
 * table.
 */
static bool overlay_find(int folder, bool by_id, OverlayMount *mount) {
    int fd = openat(folder, "mountinfo", O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    bool found = false, begins = true;
    char line[512];

    while (file && !found && fgets(line, sizeof(line), file)) {
        found = begins && overlay_is_line_of(line, by_id, mount);
        begins = strchr(line, '\n') != NULL;
    }
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
    return found;
}

static bool overlay_has_mount_id(int folder, const char *path, int flags, struct statx *ret) {
    return statx(folder, path, flags | AT_STATX_DONT_SYNC, STATX_MNT_ID, ret) == 0 &&
           ret->stx_mask & STATX_MNT_ID;
}

/* The table lacks an overlay if the process has its root in a part of it. Who has mounted it does
 * not show then, since a user can have such a root in any mount namespace. */
static bool overlay_is_root(int folder, OverlayMount *mount) {
    struct statx st;

    if (!overlay_has_mount_id(folder, "root", 0, &st) || st.stx_mnt_id != mount->id)
        return false;
    mount->major = st.stx_dev_major;
    mount->minor = st.stx_dev_minor;
    return true;
}

/* Whether our user namespace owns the mount namespace of a process. */
static bool overlay_is_namespace_ours(int folder) {
    _cleanup_close_ int mounts = openat(folder, "ns/mnt", O_RDONLY | O_CLOEXEC), users = -1;
    struct stat theirs, ours;

    users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
    return users >= 0 && fstat(users, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           theirs.st_ino == ours.st_ino;
}

/* In our own table, or in that of the first process, which may have mounts that we have not. */
static bool overlay_is_seen_here(OverlayMount *mount) {
    static const char *const folders[] = {"/proc/self", "/proc/1"};
    bool found = false;

    for (size_t i = 0; !found && i < ARRAY_SIZE(folders); i++) {
        _cleanup_close_ int folder = open(folders[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

        found =
            folder >= 0 && overlay_is_namespace_ours(folder) && overlay_find(folder, false, mount);
    }
    return found;
}

bool overlay_is_of_system(int found, uint32_t pid) {
    _cleanup_close_ int folder = -1;
    OverlayMount mount;
    struct statx st;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
    folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || !overlay_has_mount_id(found, "", AT_EMPTY_PATH, &st))
        return false;
    mount = (OverlayMount){.id = st.stx_mnt_id};
    if (overlay_find(folder, true, &mount))
        return overlay_is_namespace_ours(folder) || overlay_is_seen_here(&mount);
    return overlay_is_root(folder, &mount) && overlay_is_seen_here(&mount);
}
