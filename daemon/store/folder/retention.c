/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "store/folder/store-private.h"
#include "util/clock.h"
#include "util/log.h"

/*
 * Decides which segments may stay. Sums are updated, never recomputed, so a check is cheap.
 * Segments are ordered by number; clocks only give their age: within this boot CLOCK_BOOTTIME,
 * which nobody can set, and before it the wall clock, where it was and is synchronised and has not
 * just jumped. A segment without a trustworthy time is as old as the next one that has one. So a
 * clock that is set wrong deletes nothing; it only keeps segments too long.
 */

#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

enum { KNOW_MAX = 8, RUNTIME_SHARE = 4 };

/* One part in 100 of the file system's inodes is kept free, within these bounds and at least two
 * per CPU: a segment takes a few inodes, or one per CPU. Inodes that others use up may cost a
 * session all but its newest segments. */
enum { INODES_PART = 100, INODES_MIN = 16, INODES_MAX = 1024, NEWEST_KEPT = 4 };

#define JUMP_NS                                                                                    \
    (3600 * NS_PER_SECOND) /* the wall clock may drift by this much without being                  \
                            * distrusted */
#define DISTRUST_NS                                                                                \
    (3600 * NS_PER_SECOND) /* how long a jump must last before the new time is                     \
                            * trusted */

#define PAUSE_NS 50000 /* between two deletions of a vacuum that a client asked for */

void store_set_budget(Store *store, const Config *config) {
    bool is_volatile = config->storage == STORAGE_VOLATILE;

    store->max_use_bytes = is_volatile ? config->runtime_max_use_bytes : config->max_use_bytes;
    if (is_volatile && store->memory.store_bytes > 0)
        store->max_use_bytes = MIN(store->max_use_bytes, store->memory.store_bytes);
    store->keep_free_bytes = config->keep_free_bytes;
    store->min_use_bytes = config->min_use_bytes;
    store->max_retention_ns = config->max_retention_ns;
    store->sync_interval_ns = config->sync_interval_ns;
    store->snapshot_max_bytes = config->snapshot_max_bytes;
    store->snapshot_retention_ns = config->snapshot_retention_ns;
    store->binaries_max_bytes = config->binaries_max_use_bytes;
}

void store_measure(Store *store) {
    struct statvfs st;
    bool known = fstatvfs(store->root, &st) == 0;

    disk_touch(__func__);
    pthread_mutex_lock(&store->mutex);
    if (known) {
        store->fs_total = (uint64_t)st.f_blocks * st.f_frsize;
        store->fs_free = (uint64_t)st.f_bavail * st.f_frsize;
        store->fs_inodes = (uint64_t)st.f_files;
        store->fs_free_inodes = (uint64_t)st.f_favail;
    }
    pthread_mutex_unlock(&store->mutex);
}

uint64_t store_used_bytes(const Store *store) {
    uint64_t used =
        store->doomed_bytes + store->leased_bytes + store->snapshot_bytes + store->binary_bytes;

    for (const Folder *folder = store->folders; folder; folder = folder->next)
        used += folder->bytes + folder->open_bytes;
    return used;
}

uint64_t store_oldest_real_ns(Store *store) {
    uint64_t oldest_ns = UINT64_MAX;

    pthread_mutex_lock(&store->mutex);
    if (store->snapshot_oldest_real_ns > 0)
        oldest_ns = store->snapshot_oldest_real_ns;
    for (const Folder *f = store->folders; f; f = f->next)
        for (size_t i = 0; i < f->n_entries; i++)
            /* A segment that is not known yet may be from any time. */
            oldest_ns = MIN(oldest_ns, f->entries[i].is_known ? f->entries[i].first_real_ns : 0);
    pthread_mutex_unlock(&store->mutex);
    return oldest_ns == UINT64_MAX ? 0 : oldest_ns;
}

uint64_t store_limit_bytes(const Store *store) {
    uint64_t max = store->max_use_bytes, keep = store->keep_free_bytes, all, by_free, cap, least;

    cap = MAX(4 * GIB, 256 * MIB * store->n_cpus);
    max = config_amount(max, store->fs_total, MIN(store->fs_total / 10, cap));
    keep = config_amount(keep, store->fs_total, store->fs_total / 100 * 15);
    all = store_used_bytes(store) + store->fs_free;
    by_free = all > keep ? all - keep : 0;
    least = MIN(store->min_use_bytes, max);
    max = MIN(max, by_free);
    return MAX(max, least);
}

uint64_t store_runtime_limit_bytes(const Store *store) {
    return store_limit_bytes(store) / RUNTIME_SHARE;
}

static uint64_t retention_inodes_to_keep(const Store *store) {
    uint64_t part = MIN(store->fs_inodes / INODES_PART, (uint64_t)INODES_MAX);

    return MAX(part, INODES_MIN + 2 * (uint64_t)store->n_cpus);
}

bool store_lacks_inodes(const Store *store) {
    return store->fs_inodes > 0 && store->fs_free_inodes < retention_inodes_to_keep(store);
}

static uint64_t retention_inodes_of(const Store *store, const Entry *entry) {
    return entry->directory ? 3 + (uint64_t)store->n_cpus : 2;
}

static uint64_t retention_runtime_bytes(const Store *store) {
    uint64_t used = 0;

    for (const Folder *folder = store->folders; folder; folder = folder->next)
        used += folder->runtime ? folder->bytes + folder->open_bytes : 0;
    return used;
}

uint64_t store_equal_share(const Store *store, uint64_t limit, bool runtime) {
    uint64_t n = 0;

    for (const Folder *f = store->folders; f; f = f->next)
        n += f->bytes + f->open_bytes > 0 && f->runtime >= runtime;
    return n > 0 ? limit / n : limit;
}

uint64_t folder_share_bytes(const Folder *folder, uint64_t equal_share) {
    return folder->max_use_bytes > 0 ? MIN(equal_share, folder->max_use_bytes) : equal_share;
}

static bool retention_may_go(const Entry *entry) {
    return !entry->stuck && entry->name.state != SEGMENT_OPEN;
}

static Entry *retention_oldest(Folder *folder) {
    for (size_t i = 0; i < folder->n_entries; i++)
        if (retention_may_go(&folder->entries[i]))
            return &folder->entries[i];
    return NULL;
}

uint64_t store_believed_real_ns(const Store *store, const ClockAnchor *now) {
    const ClockAnchor *base = &store->believed.base;

    return base->real_ns + (now->boot_ns - base->boot_ns);
}

/* Trusts the wall clock again after a jump has lasted for a while. */
static void retention_believe(Store *store, const ClockAnchor *now) {
    uint64_t expected = store_believed_real_ns(store, now);
    uint64_t off = now->real_ns > expected ? now->real_ns - expected : expected - now->real_ns;
    BelievedClock *believed = &store->believed;

    if (off > JUMP_NS && believed->distrusted_since_ns == 0) {
        believed->distrusted_since_ns = MAX(now->boot_ns, (uint64_t)1);
        return;
    }
    if (off > JUMP_NS && now->boot_ns - believed->distrusted_since_ns < DISTRUST_NS)
        return;
    *believed = (BelievedClock){.base = *now};
}

/* 1 and *ret if its age is known. */
static int retention_age_of(const Store *store, const Entry *entry, const ClockAnchor *now,
                            bool synchronised, uint64_t *ret) {
    uint64_t real = store_believed_real_ns(store, now);

    if (entry->this_boot && entry->end_boot_ns > 0 && entry->end_boot_ns <= now->boot_ns) {
        *ret = now->boot_ns - entry->end_boot_ns;
        return 1;
    }
    if (entry->this_boot || !entry->timed || !synchronised || entry->end_real_ns > real)
        return 0;
    *ret = real - entry->end_real_ns;
    return 1;
}

static bool retention_is_expired(const Store *store, const Folder *folder, const Entry *entry,
                                 const ClockAnchor *now, bool synchronised) {
    uint64_t limit = store_retention_ns(store, folder), age;

    if (limit == 0 || !synchronised)
        return false;
    for (; entry < folder->entries + folder->n_entries; entry++)
        if (retention_age_of(store, entry, now, synchronised, &age))
            return age > limit;
    return false;
}

typedef struct Victim {
    Folder *folder;
    Entry entry;
    const char *why;
} Victim;

static bool retention_take_by_session(Store *store, Folder *folder, const ClockAnchor *now,
                                      bool synchronised, Victim *ret) {
    Entry *entry = retention_oldest(folder);
    const char *why = NULL;

    if (!entry)
        return false;
    if (folder->max_segments > 0 && folder->n_entries > folder->max_segments)
        why = "it has more segments than MaxSegments=";
    else if (folder->max_use_bytes > 0 &&
             folder->bytes + folder->open_bytes > folder->max_use_bytes)
        why = "it holds more than its MaxUse=";
    else if (retention_is_expired(store, folder, entry, now, synchronised))
        why = "it is older than MaxRetentionSec=";
    if (!why)
        return false;
    *ret = (Victim){.folder = folder, .entry = *entry, .why = why};
    return true;
}

/* Takes the oldest segment of the session that exceeds its share the most. */
static bool retention_take_of_most(Store *store, uint64_t limit, bool runtime, const char *why,
                                   Victim *ret) {
    uint64_t equal_share = store_equal_share(store, limit, runtime);
    int64_t most = INT64_MIN;

    for (Folder *folder = store->folders; folder; folder = folder->next) {
        int64_t over = (int64_t)(folder->bytes + folder->open_bytes) -
                       (int64_t)folder_share_bytes(folder, equal_share);
        Entry *entry = folder->runtime >= runtime ? retention_oldest(folder) : NULL;

        if (!entry || over <= most)
            continue;
        most = over;
        *ret = (Victim){.folder = folder, .entry = *entry, .why = why};
    }
    return most > INT64_MIN;
}

static bool retention_take_by_whole(Store *store, Victim *ret) {
    uint64_t limit = store_limit_bytes(store), runtime_limit = store_runtime_limit_bytes(store);

    if (retention_runtime_bytes(store) > runtime_limit &&
        retention_take_of_most(
            store, runtime_limit, true,
            "sessions begun by 'profctl start' hold more than a quarter of the store", ret))
        return true;
    return store_used_bytes(store) > limit &&
           retention_take_of_most(store, limit, false,
                                  "the store holds more than MaxUse= and KeepFree= allow", ret);
}

/* Takes the oldest segment of the session with the most segments. */
static bool retention_take_for_inodes(Store *store, Victim *ret) {
    size_t most = NEWEST_KEPT;

    if (!store_lacks_inodes(store))
        return false;
    for (Folder *folder = store->folders; folder; folder = folder->next) {
        Entry *entry = folder->n_entries > most ? retention_oldest(folder) : NULL;

        if (!entry)
            continue;
        most = folder->n_entries;
        *ret = (Victim){.folder = folder,
                        .entry = *entry,
                        .why = "the file system of the store has hardly any inodes left"};
    }
    return most > NEWEST_KEPT;
}

/* Delete the manifest last: without its segment it is harmless, but a segment without a manifest
 * would need a rebuild. */
static int retention_delete_victim(Store *store, const Victim *victim) {
    _cleanup_close_ int fd = store_folder_fd(store, victim->folder);
    char text[SEGMENT_NAME_MAX];
    int r;

    disk_touch(__func__);
    if (fd < 0)
        return fd;
    segment_name_print(&victim->entry.name, text);
    r = dirfd_remove(fd, text);
    if (r < 0 && r != -ENOENT)
        return r;
    if (!victim->entry.directory) {
        segment_name_beside(&victim->entry.name, ".json", text);
        (void)unlinkat(fd, text, 0);
    }
    return 0;
}

static void retention_forget_victim(Store *store, Victim *victim, int error) {
    pthread_mutex_lock(&store->mutex);
    store->doomed_bytes -= victim->entry.bytes;
    if (error < 0) {
        victim->entry.stuck = true;
        (void)folder_insert(victim->folder, &victim->entry);
    } else if (!store_lease_keep(store, victim->folder->name, victim->entry.name.number,
                                 victim->entry.bytes)) {
        store->fs_free += victim->entry.bytes;
    }
    pthread_mutex_unlock(&store->mutex);
    if (error < 0)
        log_warning(error,
                    "Failed to delete segment %08llu of session '%s' because %s, check the rights "
                    "of its folder: %m",
                    (unsigned long long)victim->entry.name.number, victim->folder->name,
                    victim->why);
    else
        log_debug("Deleted segment %08llu of session '%s' because %s",
                  (unsigned long long)victim->entry.name.number, victim->folder->name, victim->why);
}

/* The first entry of a folder with an unread manifest, among those whose age matters. */
static bool retention_next_unknown(Store *store, Folder *folder, Entry *ret) {
    bool found = false;

    pthread_mutex_lock(&store->mutex);
    for (size_t i = 0; !found && i < MIN(folder->n_entries, (size_t)KNOW_MAX); i++) {
        const Entry *entry = &folder->entries[i];

        if (entry->is_known && (entry->timed || entry->this_boot))
            break;
        found = !entry->is_known;
        *ret = *entry;
    }
    pthread_mutex_unlock(&store->mutex);
    return found;
}

static void retention_know_oldest(Store *store) {
    /* Folders are only ever added, at the front. */
    Folder *first;

    pthread_mutex_lock(&store->mutex);
    first = store->folders;
    pthread_mutex_unlock(&store->mutex);
    for (Folder *folder = first; folder; folder = folder->next) {
        Entry entry;

        while (retention_next_unknown(store, folder, &entry))
            (void)folder_know(store, folder, &entry);
    }
}

/* Applies the limits of a client's request besides the configured ones. */
static bool retention_take_by_limits(Store *store, Folder *folder, const StoreLimits *limits,
                                     const ClockAnchor *now, Victim *ret) {
    Entry *entry = retention_oldest(folder);
    bool over = false;
    uint64_t age;

    if (!entry)
        return false;
    if (limits->max_segments > 0 && folder->n_entries > limits->max_segments)
        over = true;
    else if (limits->max_age_ns > 0 &&
             retention_age_of(store, entry, now, store->synchronised(), &age) > 0 &&
             age > limits->max_age_ns)
        over = true;
    if (over)
        *ret = (Victim){.folder = folder, .entry = *entry, .why = "it was asked for"};
    return over;
}

static uint64_t retention_segment_bytes_of(const Store *store) {
    uint64_t bytes = 0;

    for (const Folder *f = store->folders; f; f = f->next)
        bytes += f->bytes + f->open_bytes;
    return bytes;
}

static bool retention_take_asked(Store *store, const StoreLimits *limits, const ClockAnchor *now,
                                 Victim *ret) {
    Folder *most = NULL;

    for (Folder *f = store->folders; f; f = f->next) {
        if (retention_take_by_limits(store, f, limits, now, ret))
            return true;
        if (retention_oldest(f) && (!most || f->bytes > most->bytes))
            most = f;
    }
    if (!most || retention_segment_bytes_of(store) <= limits->max_bytes)
        return false;
    *ret = (Victim){.folder = most, .entry = *retention_oldest(most), .why = "it was asked for"};
    return true;
}

static void retention_doom(Store *store, const Victim *victim) {
    folder_remove(victim->folder, folder_find(victim->folder, &victim->entry.name));
    store->doomed_bytes += victim->entry.bytes;
    store->fs_free_inodes += retention_inodes_of(store, &victim->entry);
}

static bool retention_take(Store *store, const StoreLimits *limits, const ClockAnchor *now,
                           bool synchronised, Victim *ret) {
    bool found = false;

    pthread_mutex_lock(&store->mutex);
    retention_believe(store, now);
    for (Folder *folder = store->folders; !found && folder; folder = folder->next)
        found = retention_take_by_session(store, folder, now, synchronised, ret);
    found = found || retention_take_by_whole(store, ret) || retention_take_for_inodes(store, ret) ||
            (limits && retention_take_asked(store, limits, now, ret));
    if (found)
        retention_doom(store, ret);
    pthread_mutex_unlock(&store->mutex);
    return found;
}

/* Requires `disk`. 1: one segment was deleted; 0: nothing has to be deleted. */
static int retention_vacuum_one(Store *store, const StoreLimits *limits, int *ret_error,
                                uint64_t *ret_bytes) {
    ClockAnchor now = store->now();
    Victim victim;

    retention_know_oldest(store);
    if (!retention_take(store, limits, &now, store->synchronised(), &victim))
        return 0;
    *ret_error = retention_delete_victim(store, &victim);
    retention_forget_victim(store, &victim, *ret_error);
    *ret_bytes = victim.entry.bytes;
    return 1;
}

/* Without a pause, a writer that waits for `disk` would starve. */
static void retention_let_others(Store *store) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    pthread_mutex_unlock(&store->disk);
    (void)nanosleep(&pause, NULL);
    pthread_mutex_lock(&store->disk);
}

static void retention_warn_of_inodes(Store *store) {
    static LogRate rate = {.interval_ns = 3600 * NS_PER_SECOND, .burst = 1};
    uint64_t free_inodes, all, keep;
    bool lacks;

    pthread_mutex_lock(&store->mutex);
    lacks = store_lacks_inodes(store);
    free_inodes = store->fs_free_inodes;
    all = store->fs_inodes;
    keep = retention_inodes_to_keep(store);
    pthread_mutex_unlock(&store->mutex);
    if (lacks)
        log_limited(&rate, LOG_LEVEL_WARNING, 0,
                    "The file system of store '%s' has %" PRIu64 " of %" PRIu64
                    " inodes left, deleting the oldest segments until %" PRIu64
                    " are free; delete other files, or raise RotateIntervalSec=",
                    store->path, free_inodes, all, keep);
}

int store_vacuum_to(Store *store, const StoreLimits *limits, uint64_t *ret_removed,
                    uint64_t *ret_bytes) {
    uint64_t removed = 0, bytes = 0, n;
    int first = 0, r;

    pthread_mutex_lock(&store->disk);
    store_measure(store);
    retention_warn_of_inodes(store);
    while (!(limits && limits->is_enough && atomic_load(limits->is_enough)) &&
           retention_vacuum_one(store, limits, &r, &n) > 0) {
        first = first < 0 ? first : r;
        removed += r == 0;
        bytes += r == 0 ? n : 0;
        if (limits)
            retention_let_others(store);
    }
    pthread_mutex_unlock(&store->disk);
    *ret_removed = removed;
    *ret_bytes = bytes;
    return first;
}

int store_vacuum(Store *store) {
    uint64_t removed, bytes;

    return store_vacuum_to(store, NULL, &removed, &bytes);
}

bool store_is_over(Store *store) {
    bool over;

    pthread_mutex_lock(&store->mutex);
    over = store_used_bytes(store) > store_limit_bytes(store) || store_lacks_inodes(store) ||
           retention_runtime_bytes(store) > store_runtime_limit_bytes(store);
    for (const Folder *f = store->folders; !over && f; f = f->next)
        over = f->max_use_bytes > 0 && f->bytes + f->open_bytes > f->max_use_bytes;
    pthread_mutex_unlock(&store->mutex);
    return over;
}
