/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "store/folder/store-private.h"

/*
 * The folder of one session and its list of segments, sorted by number. These functions do not
 * touch the disk.
 */

int store_folder_fd(Store *store, Folder *folder) {
    int fd;

    pthread_mutex_lock(&store->mutex);
    fd = fcntl(folder->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&store->mutex);
    return fd < 0 ? -errno : fd;
}

Folder *store_folder(Store *store, const char *name) {
    Folder *folder = store->folders;

    while (folder && strcmp(folder->name, name) != 0)
        folder = folder->next;
    return folder;
}

Entry *folder_insert(Folder *folder, const Entry *entry) {
    size_t at = folder->n_entries;

    if (folder->n_entries == folder->n_allocated) {
        size_t n = folder->n_allocated ? folder->n_allocated * 2 : 64;
        Entry *entries = reallocarray(folder->entries, n, sizeof(*entries));

        if (!entries)
            return NULL;
        folder->entries = entries;
        folder->n_allocated = n;
    }
    while (at > 0 && folder->entries[at - 1].name.number > entry->name.number)
        at--;
    memmove(folder->entries + at + 1, folder->entries + at,
            (folder->n_entries - at) * sizeof(*entry));
    folder->entries[at] = *entry;
    folder->n_entries++;
    folder->bytes += entry->bytes;
    return &folder->entries[at];
}

static bool folder_same_name(const SegmentName *a, const SegmentName *b) {
    return a->number == b->number && a->recovered == b->recovered && a->state == b->state &&
           strcmp(a->stamp, b->stamp) == 0;
}

Entry *folder_find(Folder *folder, const SegmentName *name) {
    for (size_t i = folder->n_entries; i > 0; i--)
        if (folder_same_name(&folder->entries[i - 1].name, name))
            return &folder->entries[i - 1];
    return NULL;
}

void folder_remove(Folder *folder, Entry *entry) {
    size_t at = (size_t)(entry - folder->entries);

    folder->bytes -= entry->bytes;
    folder->n_entries--;
    memmove(entry, entry + 1, (folder->n_entries - at) * sizeof(*entry));
}

void folder_configure(Folder *folder, const SessionConfig *config) {
    folder->max_use_bytes = config->max_use_bytes;
    folder->max_retention_ns = config->max_retention_ns;
    folder->max_segments = config->max_segments;
}

Folder *folder_free(Folder *folder) {
    if (!folder)
        return NULL;
    closep(&folder->fd);
    free(folder->entries);
    free(folder);
    return NULL;
}
