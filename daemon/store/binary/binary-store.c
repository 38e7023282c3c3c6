/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/binary/binary-store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "store/binary/binary-private.h"
#include "store/disk/dirfd.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * What is kept, and for how long. The budget is BinariesMaxUse=, but never more than a quarter of
 * what the store may take: samples matter more than their names. When something was used is noted
 * in memory at once and on the disk later; a killed recorder forgets the use of some minutes, which
 * only matters where the budget is short.
 */

enum { STORE_SHARE = 4, START_SLACK_US = 1000000 };

/* A use is noted with this delay at most, so what was used a little before the oldest sample may be
 * needed. */
#define USE_SLACK_NS (3600 * NS_PER_SECOND)

int binary_store_new(Store *store, BinaryStore **ret) {
    BinaryStore *b = calloc(1, sizeof(*b));

    if (!b)
        return -ENOMEM;
    *b = (BinaryStore){.store = store, .folder = -1, .ids = -1, .maps = -1};
    pthread_mutex_init(&b->mutex, NULL);
    *ret = b;
    return 0;
}

BinaryStore *binary_store_free(BinaryStore *b) {
    if (!b)
        return NULL;
    closep(&b->folder);
    closep(&b->ids);
    closep(&b->maps);
    pthread_mutex_destroy(&b->mutex);
    free(b->entries);
    free(b);
    return NULL;
}

static void binary_store_use_entry(BinaryEntry *entry) {
    entry->used_real_ns = clock_ns(CLOCK_REALTIME);
    entry->is_dirty = true;
}

bool binary_store_has(BinaryStore *b, const char *name, uint32_t owner) {
    BinaryEntry *entry;
    bool has;

    pthread_mutex_lock(&b->mutex);
    entry = binary_list_find(b, name);
    has = entry && (owner != 0 || entry->owner == 0);
    if (has)
        binary_store_use_entry(entry);
    pthread_mutex_unlock(&b->mutex);
    return has;
}

/* Clocks were set between two readings; a pid is not used again that soon. */
static bool binary_store_is_same_start(uint64_t a_us, uint64_t b_us) {
    return (a_us > b_us ? a_us - b_us : b_us - a_us) < START_SLACK_US;
}

void binary_store_find_map(BinaryStore *b, uint32_t pid, uint64_t start_real_ns,
                           char ret[BINARY_NAME_MAX]) {
    size_t n;

    binary_name_of_map(pid, start_real_ns, ret);
    n = (size_t)(strchr(ret, '-') + 1 - ret);
    pthread_mutex_lock(&b->mutex);
    for (size_t i = 0; i < b->n; i++)
        if (strncmp(b->entries[i].name, ret, n) == 0 &&
            binary_store_is_same_start(strtoull(b->entries[i].name + n, NULL, 10),
                                       start_real_ns / 1000)) {
            memcpy(ret, b->entries[i].name, BINARY_NAME_MAX);
            break;
        }
    pthread_mutex_unlock(&b->mutex);
}

bool binary_store_knows_path(BinaryStore *b, const char *name, const char *path) {
    uint64_t hash = binary_about_hash(path);
    const BinaryEntry *entry;
    bool knows;

    pthread_mutex_lock(&b->mutex);
    entry = binary_list_find(b, name);
    knows = !entry || entry->n_paths == BINARY_PATHS_MAX;
    for (size_t i = 0; !knows && i < entry->n_paths; i++)
        knows = entry->paths[i] == hash;
    pthread_mutex_unlock(&b->mutex);
    return knows;
}

static uint64_t binary_store_limit(BinaryStore *b) {
    uint64_t limit;

    pthread_mutex_lock(&b->store->mutex);
    limit = MIN(b->store->binaries_max_bytes, store_limit_bytes(b->store) / STORE_SHARE);
    pthread_mutex_unlock(&b->store->mutex);
    return limit;
}

/* Removes the entry from the list first, so that nobody opens what is being removed. */
static void binary_store_remove(BinaryStore *b, BinaryEntry *entry, const char *why) {
    int r;

    pthread_mutex_lock(&b->mutex);
    binary_list_remove(b, entry->name);
    b->removed++;
    pthread_mutex_unlock(&b->mutex);
    r = binary_folder_remove(b, entry);
    if (r == 0) {
        log_debug("Removed the symbols of '%s' because %s", entry->name, why);
        return;
    }
    log_warning(r, "Failed to remove the symbols of '%s' although %s: %m", entry->name, why);
    entry->is_stuck = true;
    pthread_mutex_lock(&b->mutex);
    b->removed--;
    (void)binary_list_set(b, entry);
    pthread_mutex_unlock(&b->mutex);
}

/* Takes the one that was not used for the longest time, if it must go. */
static bool binary_store_take_oldest(BinaryStore *b, uint64_t limit, uint64_t before_real_ns,
                                     BinaryEntry *ret, const char **ret_why) {
    const BinaryEntry *oldest;
    bool is_over, is_old;

    pthread_mutex_lock(&b->mutex);
    oldest = binary_list_oldest(b);
    is_over = b->bytes > limit;
    is_old = oldest && oldest->used_real_ns < before_real_ns;
    if (oldest)
        *ret = *oldest;
    pthread_mutex_unlock(&b->mutex);
    *ret_why = is_over ? "all of them take more than BinariesMaxUse= and a quarter of the store"
                       : "the store has no samples of it";
    return oldest && (is_over || is_old);
}

static void binary_store_trim(BinaryStore *b, uint64_t limit, uint64_t before_real_ns) {
    BinaryEntry entry;
    const char *why;

    while (binary_store_take_oldest(b, limit, before_real_ns, &entry, &why))
        binary_store_remove(b, &entry, why);
}

/* What an entry was before it is replaced; false: there is none. */
static bool binary_store_before(BinaryStore *b, const char *name, BinaryEntry *ret) {
    const BinaryEntry *entry;

    pthread_mutex_lock(&b->mutex);
    entry = binary_list_find(b, name);
    if (entry)
        *ret = *entry;
    pthread_mutex_unlock(&b->mutex);
    return entry != NULL;
}

static bool binary_store_path_fits(const char *path) {
    return path && strlen(path) < BINARY_PATH_MAX;
}

static int binary_store_write(BinaryStore *b, const BinaryNew *new, BinaryEntry *entry) {
    char file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int folder = -1;
    BinaryInfo info = {.kind = new->kind, .owner = new->owner, .bytes = new->bytes};
    int r = binary_folder_of(b, new->name, new->kind, true, &folder, file);

    if (binary_store_path_fits(new->path))
        memcpy(info.paths[info.n_paths++], new->path, strlen(new->path) + 1);
    if (r == 0)
        r = binary_folder_write(b, folder, file, new->fd, new->bytes);
    if (r == 0 && new->kind != BINARY_MAP)
        r = binary_about_write(folder, &info);
    if (r < 0)
        return r;
    binary_about_note(entry, &info);
    return binary_folder_measure(b, entry, &entry->bytes);
}

static int binary_store_keep(BinaryStore *b, BinaryEntry *entry) {
    int r;

    binary_store_use_entry(entry);
    pthread_mutex_lock(&b->mutex);
    r = binary_list_set(b, entry);
    b->kept += r == 0;
    pthread_mutex_unlock(&b->mutex);
    return r;
}

int binary_store_put(BinaryStore *b, const BinaryNew *new) {
    uint64_t limit = binary_store_limit(b);
    BinaryEntry entry = {.kind = new->kind}, before;
    bool replaces = binary_store_before(b, new->name, &before);
    int r;

    if (new->bytes > limit)
        return -EFBIG;
    /* The kernel's own come first. */
    if (replaces && before.kind != new->kind &&new->kind == BINARY_ELF)
        return -EEXIST;
    r = binary_folder_open(b);
    if (r < 0)
        return r;
    if (replaces && before.kind != new->kind)
        binary_store_remove(b, &before, "the kernel has that build id");
    memcpy(entry.name, new->name, sizeof(entry.name));
    binary_store_trim(b, limit - new->bytes, 0);
    r = binary_store_write(b, new, &entry);
    if (r == 0)
        r = binary_store_keep(b, &entry);
    /* A copy that could not be replaced is whole and stays. */
    if (r < 0 && !binary_store_before(b, new->name, &before))
        (void)binary_folder_remove(b, &entry);
    binary_store_trim(b, limit, 0);
    return r;
}

int binary_store_note_path(BinaryStore *b, const char *name, const char *path) {
    char file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int folder = -1;
    BinaryEntry entry;
    BinaryInfo info;
    int r;

    if (!binary_store_before(b, name, &entry) || !binary_store_path_fits(path) ||
        binary_store_knows_path(b, name, path))
        return 0;
    r = binary_folder_of(b, name, entry.kind, false, &folder, file);
    if (r == 0)
        r = binary_about_read(folder, &info);
    if (r < 0 || info.n_paths == BINARY_PATHS_MAX)
        return r;
    memcpy(info.paths[info.n_paths++], path, strlen(path) + 1);
    r = binary_about_write(folder, &info);
    if (r < 0)
        return r;
    binary_about_note(&entry, &info);
    binary_store_use_entry(&entry);
    pthread_mutex_lock(&b->mutex);
    r = binary_list_find(b, name) ? binary_list_set(b, &entry) : 0;
    pthread_mutex_unlock(&b->mutex);
    return r;
}

/* The next entry of which the disk has an earlier use. */
static bool binary_store_next_dirty(BinaryStore *b, BinaryEntry *ret) {
    bool found = false;

    pthread_mutex_lock(&b->mutex);
    for (size_t i = 0; !found && i < b->n; i++)
        if (b->entries[i].is_dirty) {
            b->entries[i].is_dirty = false;
            *ret = b->entries[i];
            found = true;
        }
    pthread_mutex_unlock(&b->mutex);
    return found;
}

int binary_store_tend(BinaryStore *b) {
    uint64_t oldest_ns = store_oldest_real_ns(b->store);
    BinaryEntry entry;
    int r = binary_folder_open(b);

    if (r < 0)
        return r;
    while (binary_store_next_dirty(b, &entry))
        (void)binary_folder_use(b, &entry);
    binary_store_trim(b, binary_store_limit(b), oldest_ns - MIN(oldest_ns, USE_SLACK_NS));
    return 0;
}

/* A copy of the entry at index i. */
static bool binary_store_at(BinaryStore *b, size_t i, BinaryEntry *ret) {
    bool found;

    pthread_mutex_lock(&b->mutex);
    found = i < b->n;
    if (found)
        *ret = b->entries[i];
    pthread_mutex_unlock(&b->mutex);
    return found;
}

/* False: it was removed meanwhile. */
static bool binary_store_describe(BinaryStore *b, const BinaryEntry *entry, BinaryInfo *ret) {
    char file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int folder = -1;
    struct stat st;

    *ret = (BinaryInfo){};
    if (binary_folder_of(b, entry->name, entry->kind, false, &folder, file) < 0 ||
        fstatat(folder, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (entry->kind != BINARY_MAP && binary_about_read(folder, ret) < 0)
        *ret = (BinaryInfo){};
    ret->kind = entry->kind;
    ret->bytes = (uint64_t)st.st_size;
    ret->used_real_ns = entry->used_real_ns;
    memcpy(ret->name, entry->name, sizeof(ret->name));
    return true;
}

int binary_store_each(BinaryStore *b, int (*fn)(void *userdata, const BinaryInfo *info),
                      void *userdata) {
    BinaryEntry entry;
    BinaryInfo info;
    int r = 0;

    for (size_t i = 0; r == 0 && binary_store_at(b, i, &entry); i++)
        if (binary_store_describe(b, &entry, &info))
            r = fn(userdata, &info);
    return r;
}

int binary_store_open_file(BinaryStore *b, const char *name, int *ret_fd, uint64_t *ret_bytes) {
    char file[BINARY_NAME_MAX + 8];
    _cleanup_close_ int folder = -1;
    BinaryEntry entry;
    struct stat st;
    int fd, r;

    if (!binary_store_before(b, name, &entry))
        return -ENOENT;
    r = binary_folder_of(b, name, entry.kind, false, &folder, file);
    if (r < 0)
        return r;
    fd = dirfd_open_file(folder, file, &st);
    if (fd < 0)
        return fd;
    *ret_fd = fd;
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

BinaryUse binary_store_use(BinaryStore *b) {
    BinaryUse use = {.limit_bytes = binary_store_limit(b)};

    pthread_mutex_lock(&b->mutex);
    use.n = b->n;
    use.bytes = b->bytes;
    use.kept = b->kept;
    use.removed = b->removed;
    pthread_mutex_unlock(&b->mutex);
    return use;
}
