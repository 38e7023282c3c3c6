/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/disk/disk.h"
#include "store/folder/store-private.h"

/*
 * Seals segments that were finished while sealing was impossible: the keeper had died, or the disk
 * did not answer in time. Such a file still belongs to the recorder's user, so root's perf refuses
 * it and its readers cannot open it. A survey finds these segments, and an idle writer seals them,
 * one per call.
 */

/* Takes an unsealed entry of any session. Each is tried only once until the next survey. */
static Folder *late_seal_take(Store *store, Entry *ret) {
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

/* The manifest says who may read the segment; if it is unreadable, treat the segment as
 * sensitive. */
static void late_seal_segment(Store *store, const char *session, int fd, const Entry *entry) {
    _cleanup_(manifest_freep) Manifest *manifest = NULL;
    _cleanup_close_ int beside = -1;
    int r = manifest_read(fd, &entry->name, entry->directory, session, &manifest);
    bool sensitive = r < 0 || manifest->sensitive;
    char text[SEGMENT_NAME_MAX];

    segment_name_print(&entry->name, text);
    seal_recording(&store->seal, fd, text, entry->directory, sensitive);
    beside = manifest_open(fd, &entry->name, entry->directory);
    seal_give(&store->seal, beside, "a manifest", sensitive);
}

bool store_seal_late(Store *store) {
    Entry entry;
    Folder *folder = atomic_load(&store->seal.keeps_owner) ? NULL : late_seal_take(store, &entry);
    _cleanup_close_ int fd = folder ? store_folder_fd(store, folder) : -1;

    disk_touch(__func__);
    if (fd >= 0)
        late_seal_segment(store, folder->name, fd, &entry);
    return folder != NULL;
}
