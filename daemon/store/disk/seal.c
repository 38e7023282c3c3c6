/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "util/log.h"
#include "util/macro.h"

/*
 * Seals files and folders. When profd runs without root, files keep their owner after sealing, so
 * no recording ever counts as unsealed.
 */

/* True for a regular file that was not sealed yet. A file owned by root is sealed when it has the
 * group of its readers. */
static bool seal_owns(int fd) {
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_uid != 0 || st.st_gid == getegid());
}

void seal_give(Seal *seal, int fd, const char *what, bool sensitive) {
    int r = seal->give && fd >= 0 ? seal->give(seal->userdata, fd, sensitive) : 0;

    disk_touch(__func__);
    if (seal->give && fd >= 0 && r == 0 && seal_owns(fd))
        atomic_store(&seal->keeps_owner, true);
    if (r < 0 && !atomic_exchange(&seal->is_warned, true))
        log_warning(r,
                    "Failed to make '%s' in store '%s' readable for the groups profd-read and "
                    "profd-admin, only profd can read it until the next attempt: %m",
                    what, seal->store_path);
}

static int seal_find_owned(void *userdata, const char *name _unused_, int fd) {
    bool *found = userdata;

    *found = seal_owns(fd);
    return *found ? -ECANCELED : 0;
}

/* A folder always belongs to the recorder, so check the files in it. */
bool seal_is_missing(const Seal *seal, int folder, const char *name, bool directory) {
    _cleanup_close_ int fd = -1;
    bool found = false;

    if (!seal->give || atomic_load(&seal->keeps_owner))
        return false;
    fd = openat(folder, name,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (directory ? O_DIRECTORY : 0));
    if (fd >= 0 && directory)
        (void)dirfd_each_file(fd, seal_find_owned, &found);
    return found || (fd >= 0 && seal_owns(fd));
}

bool seal_is_missing_segment(const Seal *seal, int folder, const SegmentName *name,
                             bool directory) {
    char text[SEGMENT_NAME_MAX];

    segment_name_print(name, text);
    if (seal_is_missing(seal, folder, text, directory))
        return true;
    segment_name_beside(name, ".json", text);
    return !directory && seal_is_missing(seal, folder, text, false);
}

typedef struct Sealing {
    Seal *seal;
    bool sensitive;
} Sealing;

static int seal_file(void *userdata, const char *name, int fd) {
    const Sealing *s = userdata;

    seal_give(s->seal, fd, name, s->sensitive);
    return 0;
}

void seal_recording(Seal *seal, int folder, const char *name, bool directory, bool sensitive) {
    Sealing sealing = {.seal = seal, .sensitive = sensitive};
    _cleanup_close_ int fd =
        openat(folder, name,
               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (directory ? O_DIRECTORY : 0));

    disk_touch(__func__);
    if (fd >= 0 && directory)
        (void)dirfd_each_file(fd, seal_file, &sealing);
    seal_give(seal, fd, name, sensitive);
}
