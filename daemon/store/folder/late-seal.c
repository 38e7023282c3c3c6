/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk/disk.h"
#include "store/disk/place.h"
#include "store/folder/store-private.h"

/*
 * Seals what was finished while nobody could seal it: the keeper had died, or the disk did not
 * answer in time. Such a file still belongs to the recorder's user, so that root's perf refuses it
 * and its readers cannot open it. A survey finds these segments, and a writer with nothing else to
 * do seals them, one a call. Where files stay the recorder's after they were sealed (profd without
 * root), there is nothing to find, and the search ends with the first of them.
 */

/* A file of root's is sealed when it has the group of its readers. */
bool store_owns(int fd) {
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_uid != 0 || st.st_gid == getegid());
}

static int look_for_owned(void *userdata, const char *name _unused_, int fd) {
    bool *found = userdata;

    *found = store_owns(fd);
    return *found ? -ECANCELED : 0;
}

/* A folder always stays the recorder's: the files in it are looked at. */
bool store_is_unsealed(const Store *store, int folder, const char *name, bool directory) {
    _cleanup_close_ int fd = -1;
    bool found = false;

    if (!store->seal || atomic_load(&store->seal_keeps_owner))
        return false;
    fd = openat(folder, name,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (directory ? O_DIRECTORY : 0));
    if (fd >= 0 && directory)
        (void)place_each_file(fd, look_for_owned, &found);
    return found || (fd >= 0 && store_owns(fd));
}

bool store_is_unsealed_segment(const Store *store, int folder, const SegmentName *name,
                               bool directory) {
    char text[SEGMENT_NAME_MAX];

    segment_name_print(name, text);
    if (store_is_unsealed(store, folder, text, directory))
        return true;
    segment_name_beside(name, ".json", text);
    return !directory && store_is_unsealed(store, folder, text, false);
}

typedef struct Sealing {
    Store *store;
    bool sensitive;
} Sealing;

static int seal_file(void *userdata, const char *name, int fd) {
    const Sealing *s = userdata;

    store_seal(s->store, fd, name, s->sensitive);
    return 0;
}

void store_seal_recording(Store *store, int folder, const char *name, bool directory,
                          bool sensitive) {
    Sealing sealing = {.store = store, .sensitive = sensitive};
    _cleanup_close_ int fd =
        openat(folder, name,
               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (directory ? O_DIRECTORY : 0));

    disk_touch(__func__);
    if (fd >= 0 && directory)
        (void)place_each_file(fd, seal_file, &sealing);
    store_seal(store, fd, name, sensitive);
}

/* Of any session's; it is taken once, whatever comes of it, until the next survey. */
static Folder *take_unsealed(Store *store, Entry *ret) {
    Folder *folder, *found = NULL;

    pthread_mutex_lock(&store->mutex);
    for (folder = store->folders; folder && !found; folder = folder->next)
        for (size_t i = 0; i < folder->n_entries && !found; i++)
            if (folder->entries[i].unsealed) {
                folder->entries[i].unsealed = false;
                *ret = folder->entries[i];
                found = folder;
            }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

/* Who may read it is in its manifest; where that cannot be read, it may hold anything. */
static void seal_segment(Store *store, const char *session, int fd, const Entry *entry) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_close_ int beside = -1;
    int r = manifest_read(fd, &entry->name, entry->directory, session, &manifest);
    bool sensitive = r < 0 || manifest->sensitive;
    char text[SEGMENT_NAME_MAX];

    segment_name_print(&entry->name, text);
    store_seal_recording(store, fd, text, entry->directory, sensitive);
    beside = manifest_open(fd, &entry->name, entry->directory);
    store_seal(store, beside, "a manifest", sensitive);
}

bool store_seal_late(Store *store) {
    Entry entry;
    Folder *folder = atomic_load(&store->seal_keeps_owner) ? NULL : take_unsealed(store, &entry);
    _cleanup_close_ int fd = folder ? store_folder_fd(store, folder) : -1;

    disk_touch(__func__);
    if (fd >= 0)
        seal_segment(store, folder->name, fd, &entry);
    return folder != NULL;
}
