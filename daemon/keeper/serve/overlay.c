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

/* The start of a line is enough; what a user has named a mount is behind it. */
static bool overlay_find(const char *table, bool by_id, OverlayMount *mount) {
    FILE *file = fopen(table, "re");
    bool found = false, begins = true;
    char line[512];

    while (file && !found && fgets(line, sizeof(line), file)) {
        found = begins && overlay_is_line_of(line, by_id, mount);
        begins = strchr(line, '\n') != NULL;
    }
    if (file)
        (void)fclose(file);
    return found;
}

static bool overlay_is_namespace_ours(uint32_t pid) {
    _cleanup_close_ int mounts = -1, users = -1;
    struct stat theirs, ours;
    char path[32];

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/mnt", pid);
    mounts = open(path, O_RDONLY | O_CLOEXEC);
    users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
    return users >= 0 && fstat(users, &theirs) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
           theirs.st_ino == ours.st_ino;
}

bool overlay_is_of_system(int found, uint32_t pid) {
    OverlayMount mount;
    struct statx st;
    char table[32];

    if (statx(found, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0 ||
        !(st.stx_mask & STATX_MNT_ID))
        return false;
    mount.id = st.stx_mnt_id;
    snprintf(table, sizeof(table), "/proc/%" PRIu32 "/mountinfo", pid);
    if (!overlay_find(table, true, &mount))
        return false;
    return overlay_is_namespace_ours(pid) || overlay_find("/proc/self/mountinfo", false, &mount);
}
