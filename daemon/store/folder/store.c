/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/store-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "store/disk/disk.h"
#include "store/disk/place.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

/*
 * The whole: STORE/sessions/NAME and STORE/snapshots, the lock, and the list of what lies there,
 * which is read once at start and kept by whoever adds or deletes. Everything below is reached by
 * descriptors; when somebody deletes or moves the folders away they are made anew.
 */

#define LOCK_FILE ".lock"

static void tell_holder(const Store *store, int root) {
    _cleanup_(buffer_done) Buffer holder = {};

    if (place_read(root, LOCK_FILE, 256, &holder) < 0 || holder.size == 0)
        buffer_append(&holder, "an unknown process\n", 19);
    log_error(-EBUSY,
              "Failed to lock store '%s', another profd records into it (%.*s); stop it, or give "
              "this one a store of its own with --store=",
              store->path, (int)holder.size - 1, (const char *)holder.data);
}

static int write_holder(int root) {
    _cleanup_close_ int fd = openat(root, LOCK_FILE, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    char host[65] = "", text[128];
    int n;

    if (fd < 0)
        return -errno;
    (void)gethostname(host, sizeof(host) - 1);
    n = snprintf(text, sizeof(text), "process %d on %s\n", (int)getpid(), host);
    return file_write_all(fd, text, (size_t)n);
}

/* Whatever profd makes in its store could be replaced by a link to somewhere else. */
static int log_not_ours(const Store *store, const char *name, int error) {
    static LogRate rate = {.interval_ns = 60 * NS_PER_SECOND, .burst = 1};

    if (error != -ELOOP && error != -ENOTDIR)
        return error;
    log_limited(&rate, LOG_LEVEL_ERROR, 0,
                "'%s' in store '%s' is a symbolic link or of another kind than profd made it, and "
                "profd follows no link there; move it away",
                name, store->path);
    return error;
}

int store_take_lock(Store *store, int root, int *ret_fd) {
    _cleanup_close_ int writable = openat(
        root, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, PLACE_FILE_MODE);
    _cleanup_close_ int fd = -1;
    int r;

    disk_touch(__func__);
    if (writable < 0)
        return log_error(log_not_ours(store, LOCK_FILE, -errno),
                         "Failed to open the lock '%s' of store '%s': %m", LOCK_FILE, store->path);
    /* A descriptor that cannot write keeps nobody from making the file system read-only. */
    fd = openat(root, LOCK_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return log_error(-errno, "Failed to open the lock of store '%s': %m", store->path);
    r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
    if (r == -EBADF) {
        closep(&fd);
        fd = TAKE_FD(writable);
        r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
    }
    if (r == -EWOULDBLOCK) {
        tell_holder(store, root);
        return -EBUSY;
    }
    if (r == 0)
        r = write_holder(root);
    if (r < 0)
        return log_error(r, "Failed to lock store '%s': %m", store->path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static bool same_place(int fd, const char *path) {
    struct stat a, b;

    return fd >= 0 && fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino && a.st_nlink > 0;
}

static bool same_folder(int fd, int parent, const char *name) {
    struct stat a, b;

    return fd >= 0 && fstat(fd, &a) == 0 && fstatat(parent, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void store_seal(Store *store, int fd, const char *what, bool sensitive) {
    int r = store->seal && fd >= 0 ? store->seal(store->userdata, fd, sensitive) : 0;

    disk_touch(__func__);
    if (store->seal && fd >= 0 && r == 0 && store_owns(fd))
        atomic_store(&store->seal_keeps_owner, true);
    if (r < 0 && !atomic_exchange(&store->seal_told, true))
        log_warning(r,
                    "Failed to make '%s' in store '%s' readable for the groups profd-read and "
                    "profd-admin, leaving it ours until it is looked for again: %m",
                    what, store->path);
}

/* Sets a descriptor that others may be about to copy. */
static void replace_fd(Store *store, int *fd, int by) {
    int old;

    pthread_mutex_lock(&store->mutex);
    old = *fd;
    *fd = by;
    pthread_mutex_unlock(&store->mutex);
    closep(&old);
}

/* Who may not write the folder above cannot make it anew. */
static int log_deleted(const Store *store, int error) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};

    if (store->root < 0)
        return error;
    log_limited(&rate, LOG_LEVEL_ERROR, error,
                "The folder '%s' was deleted while profd recorded into it, and profd has no right "
                "to make it again; run 'systemd-tmpfiles --create' and restart profd: %m",
                store->path);
    return error;
}

/* One that we made ourselves, as a volatile store is. An administrator's choice of readers stays.
 */
static bool is_without_readers(int root) {
    struct stat st;

    return fstat(root, &st) == 0 && st.st_uid == geteuid() && st.st_gid == getegid() &&
           st.st_mode == (S_IFDIR | PLACE_FOLDER_MODE);
}

static int open_root(Store *store) {
    _cleanup_close_ int root = -1;
    bool anew = store->root >= 0;
    int lock, r;

    disk_touch(__func__);
    if (same_place(store->root, store->path))
        return 0;
    r = file_make_folders(store->path, PLACE_FOLDER_MODE);
    if (r == -EACCES || r == -EPERM || r == -EROFS)
        return log_deleted(store, r);
    if (r < 0)
        return r;
    root = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    r = store_take_lock(store, root, &lock);
    if (r < 0)
        return r;
    replace_fd(store, &store->lock, lock);
    /* At the start the keeper has done so, but for a volatile store. */
    if (anew || is_without_readers(root))
        store_seal(store, root, "its folder", false);
    replace_fd(store, &store->root, TAKE_FD(root));
    return 0;
}

static int open_below(Store *store, int parent, const char *name, bool sensitive, int *fd) {
    int opened, r;

    disk_touch(__func__);
    if (same_folder(*fd, parent, name))
        return 0;
    r = place_open_folder(parent, name, &opened);
    if (r < 0)
        return log_not_ours(store, name, r);
    store_seal(store, opened, name, sensitive);
    replace_fd(store, fd, opened);
    return 0;
}

static int open_top(Store *store) {
    _cleanup_close_ int snapshots = -1;
    int r = open_root(store);

    if (r == 0)
        r = open_below(store, store->root, "sessions", false, &store->sessions);
    if (r == 0)
        r = open_below(store, store->root, "snapshots", false, &snapshots);
    return r;
}

int store_reopen(Store *store, Folder *folder) {
    bool same;
    int r;

    disk_touch(__func__);
    pthread_mutex_lock(&store->disk);
    r = open_top(store);
    same = r == 0 && same_folder(folder->fd, store->sessions, folder->name);
    if (r == 0 && !same)
        r = open_below(store, store->sessions, folder->name, folder->sensitive, &folder->fd);
    if (r == 0 && !same)
        r = folder_survey(store, folder);
    pthread_mutex_unlock(&store->disk);
    return r;
}

int store_reopen_snapshots(Store *store, int current) {
    int fd = -EALREADY, r;

    pthread_mutex_lock(&store->disk);
    r = open_top(store);
    if (r == 0 && !same_folder(current, store->root, "snapshots"))
        r = place_open_folder(store->root, "snapshots", &fd);
    pthread_mutex_unlock(&store->disk);
    return r < 0 ? r : fd;
}

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

int store_folder_new(Store *store, const char *name, Folder **ret) {
    Folder *folder = calloc(1, sizeof(*folder));
    int r;

    disk_touch(__func__);
    if (!folder)
        return -ENOMEM;
    snprintf(folder->name, sizeof(folder->name), "%s", name);
    folder->next_number = 1;
    r = place_open_folder(store->sessions, name, &folder->fd);
    if (r == 0)
        folder->runtime = faccessat(folder->fd, RUNTIME_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (r == 0)
        r = folder_survey(store, folder);
    if (r < 0) {
        closep(&folder->fd);
        free(folder->entries);
        free(folder);
        return r;
    }
    pthread_mutex_lock(&store->mutex);
    folder->next = store->folders;
    store->folders = folder;
    pthread_mutex_unlock(&store->mutex);
    *ret = folder;
    return 0;
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

static bool same_name(const SegmentName *a, const SegmentName *b) {
    return a->number == b->number && a->recovered == b->recovered && a->state == b->state &&
           strcmp(a->stamp, b->stamp) == 0;
}

Entry *folder_find(Folder *folder, const SegmentName *name) {
    for (size_t i = folder->n_entries; i > 0; i--)
        if (same_name(&folder->entries[i - 1].name, name))
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

static void read_boot_id(Store *store) {
    if (file_read_text("/proc/sys/kernel/random/boot_id", store->boot, sizeof(store->boot)) < 0)
        store->boot[0] = '\0';
}

static int store_init(Store *store, const StoreOptions *options) {
    long n = sysconf(_SC_NPROCESSORS_CONF);

    *store = (Store){.root = -1,
                     .sessions = -1,
                     .lock = -1,
                     .path = strdup(options->path),
                     .environment = options->environment,
                     .seal = options->seal,
                     .on_written = options->on_written,
                     .memory = options->memory,
                     .userdata = options->userdata,
                     .now = clock_anchor_now,
                     .synchronised = clock_is_synchronised,
                     .n_cpus = n > 0 ? (unsigned)n : 1};
    if (!store->path)
        return -ENOMEM;
    pthread_mutex_init(&store->disk, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->recovered, NULL);
    read_boot_id(store);
    store->believed.base = store->now();
    return 0;
}

int store_open(const StoreOptions *options, Store **ret) {
    Store *made = calloc(1, sizeof(*made));
    _cleanup_(store_freep) Store *store = NULL;
    int r;

    if (!made)
        return -ENOMEM;
    r = store_init(made, options);
    if (r < 0) {
        free(made);
        return r;
    }
    store = made;
    r = open_top(store);
    if (r == -EBUSY)
        return r;
    if (r == 0)
        r = store_survey(store);
    if (r < 0)
        return log_error(r,
                         "Failed to open store '%s', check that it can be written or give another "
                         "one with --store=: %m",
                         options->path);
    store_measure(store);
    store_configure(store, options->config);
    *ret = TAKE_PTR(store);
    return 0;
}

Store *store_free(Store *store) {
    if (!store || store->n_abandoned > 0)
        return NULL;
    while (store->folders) {
        Folder *folder = store->folders;

        store->folders = folder->next;
        closep(&folder->fd);
        free(folder->entries);
        free(folder);
    }
    closep(&store->lock);
    closep(&store->sessions);
    closep(&store->root);
    pthread_mutex_destroy(&store->disk);
    pthread_mutex_destroy(&store->mutex);
    pthread_cond_destroy(&store->recovered);
    free(store->path);
    free(store);
    return NULL;
}

void store_configure(Store *store, const Config *config) {
    pthread_mutex_lock(&store->mutex);
    store_set_budget(store, config);
    for (uint32_t i = 0; i < config->n_sessions; i++) {
        Folder *folder = store_folder(store, config->sessions[i].name);

        if (folder)
            folder_configure(folder, &config->sessions[i]);
    }
    pthread_mutex_unlock(&store->mutex);
}
