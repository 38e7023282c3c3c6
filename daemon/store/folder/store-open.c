/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/store-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk/dirfd.h"
#include "store/disk/disk.h"
#include "util/clock.h"
#include "util/file.h"
#include "util/log.h"

/*
 * The store as a whole: STORE/sessions/NAME and STORE/snapshots, the lock, and the list of
 * segments, which is read once at start and updated by whoever adds or deletes. Everything below is
 * reached by descriptors; if somebody deletes or moves the folders, they are created again.
 */

#define LOCK_FILE    ".lock"
#define LOCK_WAIT_S  5
#define LOCK_LOOK_US 20000

static void store_log_holder(const Store *store, int root) {
    _cleanup_(buffer_done) Buffer holder = {};

    if (dirfd_read(root, LOCK_FILE, 256, &holder) < 0 || holder.size == 0)
        buffer_append(&holder, "an unknown process\n", 19);
    log_error(-EBUSY,
              "Failed to lock store '%s', another profd records into it (%.*s); stop it, or give "
              "this one a store of its own with --store=",
              store->path, (int)holder.size - 1, (const char *)holder.data);
}

static int store_write_holder(int root) {
    _cleanup_close_ int fd = openat(root, LOCK_FILE, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
    char host[65] = "", text[128];
    int n;

    if (fd < 0)
        return -errno;
    (void)gethostname(host, sizeof(host) - 1);
    n = snprintf(text, sizeof(text), "process %d on %s\n", (int)getpid(), host);
    return file_write_all(fd, text, (size_t)n);
}

/* At start the profd before this one may still be dying, or finishing its segment: systemd starts
 * the next one as soon as the keeper is gone. */
static int store_lock_file(const Store *store, int fd) {
    uint64_t begin_ns = clock_monotonic_ns();
    bool is_start = store->root < 0, is_told = false;

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || !is_start ||
            clock_monotonic_ns() - begin_ns > LOCK_WAIT_S * NS_PER_SECOND)
            return -errno;
        if (!is_told)
            log_notice("Another profd holds the lock of store '%s', waiting up to %d s for its end",
                       store->path, LOCK_WAIT_S);
        is_told = true;
        (void)usleep(LOCK_LOOK_US);
    }
    return 0;
}

/* If others may write to this folder, they could replace our files by links to other places. */
static int store_log_not_ours(const Store *store, const char *name, int error) {
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
        root, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, DIRFD_FILE_MODE);
    _cleanup_close_ int fd = -1;
    int r;

    disk_touch(__func__);
    if (writable < 0)
        return log_error(store_log_not_ours(store, LOCK_FILE, -errno),
                         "Failed to open the lock '%s' of store '%s': %m", LOCK_FILE, store->path);
    /* Open read-only: a writable descriptor would prevent a remount of the file system as
     * read-only. */
    fd = openat(root, LOCK_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return log_error(-errno, "Failed to open the lock of store '%s': %m", store->path);
    r = store_lock_file(store, fd);
    if (r == -EBADF) {
        closep(&fd);
        fd = TAKE_FD(writable);
        r = store_lock_file(store, fd);
    }
    if (r == -EWOULDBLOCK) {
        store_log_holder(store, root);
        return -EBUSY;
    }
    if (r == 0)
        r = store_write_holder(root);
    if (r < 0)
        return log_error(r, "Failed to lock store '%s': %m", store->path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

static bool store_same_place(int fd, const char *path) {
    struct stat a, b;

    return fd >= 0 && fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino && a.st_nlink > 0;
}

static bool store_same_folder(int fd, int parent, const char *name) {
    struct stat a, b;

    return fd >= 0 && fstat(fd, &a) == 0 && fstatat(parent, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Replaces a descriptor that another thread may be about to copy. */
static void store_replace_fd(Store *store, int *fd, int by) {
    int old;

    pthread_mutex_lock(&store->mutex);
    old = *fd;
    *fd = by;
    pthread_mutex_unlock(&store->mutex);
    closep(&old);
}

/* Without the right to write to the parent folder profd cannot create the store again. */
static int store_log_deleted(const Store *store, int error) {
    static LogRate rate = {.interval_ns = 600 * NS_PER_SECOND, .burst = 1};

    if (store->root < 0)
        return error;
    log_limited(&rate, LOG_LEVEL_ERROR, error,
                "The folder '%s' was deleted while profd recorded into it, and profd has no right "
                "to make it again; run 'systemd-tmpfiles --create' and restart profd: %m",
                store->path);
    return error;
}

/* True for a folder that we created, like a volatile store. Readers that an administrator has
 * chosen are kept. */
static bool store_is_without_readers(int root) {
    struct stat st;

    return fstat(root, &st) == 0 && st.st_uid == geteuid() && st.st_gid == getegid() &&
           st.st_mode == (S_IFDIR | DIRFD_FOLDER_MODE);
}

static int store_open_root(Store *store) {
    _cleanup_close_ int root = -1;
    bool anew = store->root >= 0;
    int lock, r;

    disk_touch(__func__);
    if (store_same_place(store->root, store->path))
        return 0;
    r = file_make_folders(store->path, DIRFD_FOLDER_MODE);
    if (r == -EACCES || r == -EPERM || r == -EROFS)
        return store_log_deleted(store, r);
    if (r < 0)
        return r;
    root = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -errno;
    r = store_take_lock(store, root, &lock);
    if (r < 0)
        return r;
    store_replace_fd(store, &store->lock, lock);
    /* At start the keeper has done this already, except for a volatile store. */
    if (anew || store_is_without_readers(root))
        seal_give(&store->seal, root, "its folder", false);
    store_replace_fd(store, &store->root, TAKE_FD(root));
    return 0;
}

static int store_open_below(Store *store, int parent, const char *name, bool sensitive, int *fd) {
    int opened, r;

    disk_touch(__func__);
    if (store_same_folder(*fd, parent, name))
        return 0;
    r = dirfd_open_folder(parent, name, &opened);
    if (r < 0)
        return store_log_not_ours(store, name, r);
    seal_give(&store->seal, opened, name, sensitive);
    store_replace_fd(store, fd, opened);
    return 0;
}

static bool store_has_folder(int parent, const char *name) {
    struct stat st;

    return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* `again`: what is there was sealed when it was opened first. */
static int store_open_top(Store *store, bool again) {
    _cleanup_close_ int snapshots = -1;
    int r = store_open_root(store);

    if (r == 0)
        r = store_open_below(store, store->root, "sessions", false, &store->sessions);
    if (r == 0 && !(again && store_has_folder(store->root, "snapshots")))
        r = store_open_below(store, store->root, "snapshots", false, &snapshots);
    return r;
}

int store_reopen(Store *store, Folder *folder) {
    bool same;
    int r;

    disk_touch(__func__);
    pthread_mutex_lock(&store->disk);
    r = store_open_top(store, true);
    same = r == 0 && store_same_folder(folder->fd, store->sessions, folder->name);
    if (r == 0 && !same)
        r = store_open_below(store, store->sessions, folder->name, folder->sensitive, &folder->fd);
    if (r == 0 && !same)
        r = folder_survey(store, folder);
    pthread_mutex_unlock(&store->disk);
    return r;
}

static int store_reopen_top(Store *store, int current, const char *name) {
    int fd = -EALREADY, r;

    pthread_mutex_lock(&store->disk);
    r = store_open_top(store, true);
    if (r == 0 && !store_same_folder(current, store->root, name))
        r = dirfd_open_folder(store->root, name, &fd);
    pthread_mutex_unlock(&store->disk);
    return r < 0 ? r : fd;
}

int store_reopen_snapshots(Store *store, int current) {
    return store_reopen_top(store, current, "snapshots");
}

int store_reopen_binaries(Store *store, int current) {
    int fd = store_reopen_top(store, current, "binaries");

    if (fd >= 0)
        seal_give(&store->seal, fd, "binaries", false);
    return fd;
}

static void store_read_boot_id(Store *store) {
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
                     .seal = {.give = options->seal, .userdata = options->userdata},
                     .on_written = options->on_written,
                     .memory = options->memory,
                     .userdata = options->userdata,
                     .now = clock_anchor_now,
                     .synchronised = clock_is_synchronised,
                     .n_cpus = n > 0 ? (unsigned)n : 1};
    if (!store->path)
        return -ENOMEM;
    store->seal.store_path = store->path;
    pthread_mutex_init(&store->disk, NULL);
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->recovered, NULL);
    store_read_boot_id(store);
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
    r = store_open_top(store, false);
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
        folder_free(folder);
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

const char *store_boot(const Store *store) {
    return store->boot;
}
