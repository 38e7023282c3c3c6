/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/snapshot/snapshot-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * The list of finished snapshots: read from the folder, at start and after the folder was replaced,
 * and kept in memory. A name with a leading dot was never finished. A snapshot without a manifest
 * has no owner and stays until somebody removes it.
 */

static bool snapshot_catalog_has_suffix(const char *text, const char *suffix,
                                        char ret[SNAPSHOT_NAME_MAX]) {
    size_t n = strlen(text), k = strlen(suffix);

    if (n <= k || n - k >= SNAPSHOT_NAME_MAX || strcmp(text + n - k, suffix) != 0)
        return false;
    memcpy(ret, text, n - k);
    ret[n - k] = '\0';
    return snapshot_name_is_valid(ret);
}

void snapshot_list_add(KeptList *list, Kept *kept) {
    Kept *behind;

    TAILQ_FOREACH(behind, list, list)
        if (strcmp(behind->info.name, kept->info.name) >= 0)
            break;
    if (behind)
        TAILQ_INSERT_BEFORE(behind, kept, list);
    else
        TAILQ_INSERT_TAIL(list, kept, list);
}

Kept *snapshot_list_find(SnapshotEngine *engine, const char *name) {
    Kept *kept;

    TAILQ_FOREACH(kept, &engine->kept, list)
        if (strcmp(kept->info.name, name) == 0)
            break;
    return kept;
}

bool snapshot_is_lost(const SnapshotEngine *engine, const Kept *kept) {
    return kept->generation != atomic_load(&engine->generation);
}

static size_t snapshot_catalog_count_files(int folder, const char *data) {
    _cleanup_close_ int fd = openat(folder, data, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char name[24];
    size_t n = 1;

    for (; fd >= 0; n++) {
        snprintf(name, sizeof(name), "data.%zu", n - 1);
        if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
            break;
    }
    return n;
}

/* Fills in what is known about a snapshot without a manifest. */
static void snapshot_catalog_make_up(int folder, const char *data, const char *name, bool is_folder,
                                     Kept *kept) {
    struct stat st;

    kept->info = (SnapshotInfo){
        .layout = is_folder ? LAYOUT_DIRECTORY : LAYOUT_FILE, .sensitive = true, .pinned = true};
    kept->privileged = true;
    snprintf(kept->info.name, sizeof(kept->info.name), "%s", name);
    snprintf(kept->info.reason, sizeof(kept->info.reason), "Its manifest is lost");
    if (fstatat(folder, data, &st, AT_SYMLINK_NOFOLLOW) == 0)
        kept->info.created_ns = (uint64_t)st.st_mtim.tv_sec * NS_PER_SECOND;
}

/* Seals a snapshot that could not be sealed when it was finished. There are few of these, and this
 * runs at start, when nothing waits, or on the housekeeper. */
static void snapshot_catalog_seal_late(SnapshotEngine *engine, const char *data, bool is_folder,
                                       const Kept *kept) {
    char manifest[SNAPSHOT_FILE_MAX];

    snapshot_manifest_name(kept->info.name, manifest);
    if (!seal_is_missing(&engine->store->seal, engine->folder, data, is_folder) &&
        !seal_is_missing(&engine->store->seal, engine->folder, manifest, false))
        return;
    seal_recording(&engine->store->seal, engine->folder, data, is_folder, kept->info.sensitive);
    seal_recording(&engine->store->seal, engine->folder, manifest, false, kept->info.sensitive);
}

static int snapshot_catalog_load_data(SnapshotEngine *engine, const char *data, const char *name,
                                      KeptList *to) {
    Kept *kept = calloc(1, sizeof(*kept));
    bool is_folder;
    uint64_t bytes;
    int r;

    if (!kept)
        return -ENOMEM;
    r = dirfd_measure(engine->folder, data, &bytes, &is_folder);
    if (r < 0) {
        free(kept);
        return 0;
    }
    r = snapshot_read_manifest(engine->folder, name, kept);
    if (r < 0) {
        log_warning(r, "Failed to read the manifest of snapshot '%s' in store '%s', keeping it: %m",
                    name, engine->store->path);
        snapshot_catalog_make_up(engine->folder, data, name, is_folder, kept);
    }
    snapshot_catalog_seal_late(engine, data, is_folder, kept);
    kept->seen_boot_ns = engine->store->now().boot_ns;
    kept->info.layout = is_folder ? LAYOUT_DIRECTORY : LAYOUT_FILE;
    kept->info.bytes = bytes;
    kept->info.n_files = is_folder ? snapshot_catalog_count_files(engine->folder, data) : 1;
    snapshot_list_add(to, kept);
    return 0;
}

/* Removes the manifest of a snapshot whose data was never finished. */
static void snapshot_catalog_remove_stray_manifest(SnapshotEngine *engine, const char *text,
                                                   const char *name) {
    char data[SNAPSHOT_FILE_MAX];

    snprintf(data, sizeof(data), "%.*s" SNAPSHOT_DATA, SNAPSHOT_NAME_MAX, name);
    if (faccessat(engine->folder, data, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        (void)unlinkat(engine->folder, text, 0);
}

static void snapshot_catalog_remove_unfinished(SnapshotEngine *engine, const char *text) {
    char name[SNAPSHOT_NAME_MAX];

    if (text[0] != '.') {
        if (snapshot_catalog_has_suffix(text, SNAPSHOT_MANIFEST, name))
            snapshot_catalog_remove_stray_manifest(engine, text, name);
        return;
    }
    if (strcmp(text, ".") != 0 && strcmp(text, "..") != 0 &&
        dirfd_remove(engine->folder, text) == 0)
        log_notice("Removed '%.100s', an unfinished snapshot, from store '%s'", text,
                   engine->store->path);
}

int snapshot_list_load(SnapshotEngine *engine, bool at_start, KeptList *to) {
    char name[SNAPSHOT_NAME_MAX];
    int fd = openat(engine->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    int r = 0;

    disk_touch(__func__);
    if (!dir)
        return -errno;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        if (snapshot_catalog_has_suffix(e->d_name, SNAPSHOT_DATA, name))
            r = snapshot_catalog_load_data(engine, e->d_name, name, to);
        else if (at_start)
            snapshot_catalog_remove_unfinished(engine, e->d_name);
    }
    return r;
}

void snapshot_list_free(KeptList *list) {
    for (Kept *kept; (kept = TAILQ_FIRST(list));) {
        TAILQ_REMOVE(list, kept, list);
        free(kept);
    }
}

static const SnapshotInfo *snapshot_catalog_info_of(SnapshotEngine *engine, Kept *kept,
                                                    SnapshotInfo *ret) {
    char data[SNAPSHOT_FILE_MAX];

    snapshot_data_name(&kept->info, data);
    snprintf(engine->path, sizeof(engine->path), "%s/snapshots/%s", engine->store->path, data);
    *ret = kept->info;
    ret->path = engine->path;
    ret->expires_ns = snapshot_expires_ns(engine->store, kept);
    return ret;
}

int snapshot_each(SnapshotEngine *engine, int (*fn)(void *userdata, const SnapshotInfo *info),
                  void *userdata) {
    int r = 0;

    for (Kept *k = TAILQ_FIRST(&engine->kept); r >= 0 && k; k = TAILQ_NEXT(k, list)) {
        SnapshotInfo info;

        if (!k->info.transient && k->fate == FATE_STAYS)
            r = fn(userdata, snapshot_catalog_info_of(engine, k, &info));
    }
    return MIN(r, 0);
}

int snapshot_find(SnapshotEngine *engine, const char *name, SnapshotInfo *ret) {
    Kept *kept = snapshot_list_find(engine, name);

    if (!kept || kept->fate != FATE_STAYS)
        return -ENOENT;
    (void)snapshot_catalog_info_of(engine, kept, ret);
    return 0;
}

int snapshot_open_file(const SnapshotEngine *engine, const SnapshotInfo *info, const char *file,
                       int *ret_fd, uint64_t *ret_bytes) {
    char data[SNAPSHOT_FILE_MAX];

    snapshot_data_name(info, data);
    return dirfd_open_part(engine->folder, data, info->layout == LAYOUT_DIRECTORY, file, ret_fd,
                           ret_bytes);
}
