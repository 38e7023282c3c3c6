/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/binary/binary-private.h"
#include "store/binary/binary-store.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "util/clock.h"

/*
 * Lists what earlier runs left. Anybody may have put anything there: only what has a name that
 * profd gives, lies in plain folders, and is a plain file of the size that about.json says is
 * taken; the rest stays where it is. Files that could not be sealed in time are sealed now.
 */

enum { NAMES_MAX = 4 * BINARIES_MAX }; /* that are looked at in one folder */

static DIR *binary_survey_list(int parent, const char *name) {
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        (void)close(fd);
    return dir;
}

static uint64_t binary_survey_time_of(const struct stat *st) {
    return (uint64_t)MAX(st->st_mtim.tv_sec, (time_t)0) * NS_PER_SECOND +
           (uint64_t)st->st_mtim.tv_nsec;
}

static int binary_survey_add(BinaryStore *b, BinaryEntry *entry) {
    int r = binary_folder_measure(b, entry, &entry->bytes);

    if (r < 0)
        return 0;
    pthread_mutex_lock(&b->mutex);
    r = binary_list_set(b, entry);
    pthread_mutex_unlock(&b->mutex);
    return r;
}

static void binary_survey_seal(BinaryStore *b, int folder, const char *file) {
    struct stat st;
    _cleanup_close_ int fd = -1;

    if (!seal_is_missing(&b->store->seal, folder, file, false))
        return;
    fd = dirfd_open_file(folder, file, &st);
    seal_give(&b->store->seal, fd, file, false);
}

/* A folder with the name of a build id. */
static int binary_survey_id(BinaryStore *b, int above, const char *first, const char *rest) {
    _cleanup_close_ int folder =
        openat(above, rest, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    BinaryEntry entry = {};
    struct stat st, file;
    BinaryInfo info;

    if (strlen(rest) + 3 > sizeof(entry.name))
        return 0;
    snprintf(entry.name, sizeof(entry.name), "%s%s", first, rest);
    if (!binary_name_is_valid(entry.name) || strchr(entry.name, '-') || folder < 0 ||
        fstat(folder, &st) < 0 || binary_about_read(folder, &info) < 0 || info.kind == BINARY_MAP ||
        fstatat(folder, binary_kind_name(info.kind), &file, AT_SYMLINK_NOFOLLOW) < 0 ||
        !S_ISREG(file.st_mode) || (uint64_t)file.st_size != info.bytes)
        return 0;
    binary_about_note(&entry, &info);
    entry.used_real_ns = binary_survey_time_of(&st);
    binary_survey_seal(b, folder, binary_kind_name(info.kind));
    return binary_survey_add(b, &entry);
}

static int binary_survey_map(BinaryStore *b, const char *file) {
    BinaryEntry entry = {.kind = BINARY_MAP};
    size_t n = strlen(file);
    struct stat st;

    if (n < 5 || n - 4 >= sizeof(entry.name) || strcmp(file + n - 4, ".map") != 0)
        return 0;
    memcpy(entry.name, file, n - 4);
    if (!binary_name_is_valid(entry.name) || !strchr(entry.name, '-') ||
        fstatat(b->maps, file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
        return 0;
    /* A map was last written when its program last made code, and its samples may be newer. */
    entry.used_real_ns = clock_ns(CLOCK_REALTIME);
    binary_survey_seal(b, b->maps, file);
    return binary_survey_add(b, &entry);
}

static int binary_survey_maps(BinaryStore *b) {
    _cleanup_closedir_ DIR *dir = binary_survey_list(b->folder, "maps");
    unsigned n = 0;
    int r = 0;

    for (struct dirent *e; r == 0 && dir && n < NAMES_MAX && (e = readdir(dir)); n++)
        r = binary_survey_map(b, e->d_name);
    return r;
}

static int binary_survey_ids(BinaryStore *b, const char *first) {
    _cleanup_closedir_ DIR *dir = binary_survey_list(b->ids, first);
    unsigned n = 0;
    int r = 0;

    for (struct dirent *e; r == 0 && dir && n < NAMES_MAX && (e = readdir(dir)); n++)
        r = binary_survey_id(b, dirfd(dir), first, e->d_name);
    return r;
}

int binary_store_load(BinaryStore *b) {
    int r = binary_folder_open(b);

    disk_touch(__func__);
    for (unsigned i = 0; r == 0 && i < 256; i++) {
        char first[3];

        snprintf(first, sizeof(first), "%02x", i);
        r = binary_survey_ids(b, first);
    }
    if (r == 0)
        r = binary_survey_maps(b);
    b->is_loaded = true;
    /* A full list is no failure: the rest is not looked at. */
    return r == -E2BIG ? 0 : r;
}
