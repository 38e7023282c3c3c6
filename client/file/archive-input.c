/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/archive-input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "archive/tar-reader.h"
#include "util/array.h"
#include "util/file.h"

/*
 * Names in an archive are hostile: none becomes a path. The recording goes to an unlinked file, and
 * .build-id/xx/REST/FILE with hex digits and a FILE that is known, or maps/PID-START.map, to a path
 * that is made anew of these digits; everything else is skipped. Sizes are counted as bytes arrive
 * and end the work at a limit, for a compressed archive is small.
 *
 * The only global variable is what a signal handler has to remove: the folder that is being used.
 */

enum {
    ARCHIVE_COPY = 64 * 1024,
    ARCHIVE_ID_MIN = 8,
    ARCHIVE_ID_MAX = 40,
    ARCHIVE_PID_MAX = 10,
    ARCHIVE_START_MAX = 19
};

static const uint64_t archive_recording_max = (uint64_t)64 << 30;
static const uint64_t archive_files_size_max = (uint64_t)32 << 30;

struct ArchiveFolder {
    char *path;
    char **made; /* paths in the order they were made, the folder first */
    size_t n_made;
    ArchiveFolder *next; /* a program may use several */
};

static ArchiveFolder *volatile archive_folders;

static const int archive_signals[] = {SIGINT, SIGTERM, SIGHUP};

static ssize_t archive_read(void *data, size_t size, void *arg) {
    ssize_t n;

    do
        n = read(*(int *)arg, data, size);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Only regular files: a pipe could be read once. */
static int archive_open(const char *path, int *ret_fd) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    *ret_fd = TAKE_FD(fd);
    return 0;
}

int archive_is(const char *path) {
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    _cleanup_close_ int fd = -1;
    TarEntry entry;
    int r = archive_open(path, &fd);

    if (r == 0)
        r = tar_reader_new(archive_read, &fd, &tar);
    if (r == 0)
        r = tar_reader_next(tar, &entry);
    return r == -EBADMSG || r == -EINVAL ? 0 : MIN(r, 1);
}

/* Copies the entry; *left is what may still be written, by all that is read. */
static int archive_copy(TarReader *tar, int fd, uint64_t *left) {
    _cleanup_free_ uint8_t *block = malloc(ARCHIVE_COPY);
    ssize_t n;

    if (!block)
        return -ENOMEM;
    while ((n = tar_reader_read(tar, block, ARCHIVE_COPY)) > 0) {
        int r;

        if ((uint64_t)n > *left)
            return -EFBIG;
        *left -= (uint64_t)n;
        r = file_write_all(fd, block, (size_t)n);
        if (r < 0)
            return r;
    }
    return (int)n;
}

static const char *archive_temporary(void) {
    const char *folder = getenv("TMPDIR");

    return folder && *folder ? folder : "/var/tmp";
}

int archive_open_recording(const char *path, int *ret_fd) {
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    _cleanup_close_ int fd = -1, copy = -1;
    uint64_t left = archive_recording_max;
    TarEntry entry;
    int r = archive_open(path, &fd);

    if (r == 0)
        r = tar_reader_new(archive_read, &fd, &tar);
    while (r == 0 && (r = tar_reader_next(tar, &entry)) > 0 &&
           !(entry.is_file && strcmp(entry.name, ARCHIVE_RECORDING) == 0))
        r = 0;
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    copy = file_open_unnamed(archive_temporary());
    if (copy < 0)
        return copy;
    r = archive_copy(tar, copy, &left);
    if (r < 0)
        return r;
    if (lseek(copy, 0, SEEK_SET) < 0)
        return -errno;
    *ret_fd = TAKE_FD(copy);
    return 0;
}

static bool archive_is_hex(const char *text, size_t n) {
    return strspn(text, "0123456789abcdef") >= n;
}

/* .build-id/xx/REST/FILE, and nothing that is only similar. */
static bool archive_takes_binary(const char *name) {
    static const char *const files[] = {"elf", "debug", "vdso", "kallsyms"};
    static const char folder[] = ".build-id/";
    const char *at = name + sizeof(folder) - 1;
    size_t rest;

    if (strncmp(name, folder, sizeof(folder) - 1) != 0 || !archive_is_hex(at, 2) || at[2] != '/')
        return false;
    rest = strspn(at + 3, "0123456789abcdef");
    if (rest + 2 < ARCHIVE_ID_MIN || rest + 2 > ARCHIVE_ID_MAX || at[3 + rest] != '/')
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        if (strcmp(at + 4 + rest, files[i]) == 0)
            return true;
    return false;
}

/* maps/PID-START.map: the names of code that a process generated. */
static bool archive_takes_map(const char *name) {
    static const char digits[] = "0123456789";
    const char *at = name + strlen("maps/");
    size_t pid, start;

    if (strncmp(name, "maps/", strlen("maps/")) != 0)
        return false;
    pid = strspn(at, digits);
    start = at[pid] == '-' ? strspn(at + pid + 1, digits) : 0;
    return pid > 0 && pid <= ARCHIVE_PID_MAX && start > 0 && start <= ARCHIVE_START_MAX &&
           strcmp(at + pid + 1 + start, ".map") == 0;
}

static bool archive_takes(const char *name) {
    return archive_takes_binary(name) || archive_takes_map(name);
}

static void archive_remove(const ArchiveFolder *folder) {
    for (size_t i = folder->n_made; i > 0; i--)
        if (unlink(folder->made[i - 1]) < 0)
            (void)rmdir(folder->made[i - 1]);
}

static void archive_on_signal(int number) {
    for (const ArchiveFolder *folder = archive_folders; folder; folder = folder->next)
        archive_remove(folder);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void archive_block_signals(sigset_t *ret_old) {
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(archive_signals); i++)
        sigaddset(&set, archive_signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, ret_old);
}

static void archive_arm(ArchiveFolder *folder) {
    struct sigaction old, action = {.sa_handler = archive_on_signal};

    folder->next = archive_folders;
    archive_folders = folder;
    for (size_t i = 0; i < ARRAY_SIZE(archive_signals); i++)
        if (sigaction(archive_signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(archive_signals[i], &action, NULL);
}

static void archive_disarm(const ArchiveFolder *folder) {
    if (archive_folders == folder) {
        archive_folders = folder->next;
        return;
    }
    for (ArchiveFolder *at = archive_folders; at; at = at->next)
        if (at->next == folder)
            at->next = folder->next;
}

ArchiveFolder *archive_folder_free(ArchiveFolder *folder) {
    sigset_t old;

    if (!folder)
        return NULL;
    archive_block_signals(&old);
    archive_remove(folder);
    archive_disarm(folder);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    for (size_t i = 0; i < folder->n_made; i++)
        free(folder->made[i]);
    free(folder->made);
    free(folder->path);
    free(folder);
    return NULL;
}

const char *archive_folder_path(const ArchiveFolder *folder) {
    return folder->path;
}

/* Makes a folder, or with `fd` a file, and notes it, while no signal comes in between. */
static int archive_make(ArchiveFolder *folder, const char *path, int *fd) {
    char **made;
    sigset_t old;
    int r = 0;

    if (folder->n_made >= 3 * ARCHIVE_FILES_MAX)
        return -EFBIG;
    archive_block_signals(&old);
    made = array_grow(&folder->made, &folder->n_made);
    if (!made || !(*made = strdup(path)))
        r = -ENOMEM;
    else if (fd)
        r = (*fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)) < 0
                ? -errno
                : 0;
    else
        r = mkdir(path, 0700) < 0 ? -errno : 0;
    if (r < 0 && made) {
        free(*made);
        folder->n_made--;
    }
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return r;
}

static int archive_make_root(ArchiveFolder *folder) {
    char path[PATH_MAX];
    char **made = array_grow(&folder->made, &folder->n_made);
    sigset_t old;
    int r = 0;

    if (!made)
        return -ENOMEM;
    if (asprintf(made, "%s/profctl-XXXXXX", archive_temporary()) < 0) {
        folder->n_made--;
        return -ENOMEM;
    }
    archive_block_signals(&old);
    if (!mkdtemp(*made)) {
        r = -errno;
        free(*made);
        folder->n_made--;
    } else
        archive_arm(folder);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (r < 0)
        return r;
    folder->path = strdup(folder->made[0]);
    if (!folder->path)
        return -ENOMEM;
    if (snprintf(path, sizeof(path), "%s/.build-id", folder->path) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    return archive_make(folder, path, NULL);
}

/* A file that is there already is kept: the first one counts. */
static int archive_take(ArchiveFolder *folder, TarReader *tar, const char *name, uint64_t *left) {
    char path[PATH_MAX];
    _cleanup_close_ int fd = -1;
    bool is_file = false;
    int r = 0;

    for (size_t n = 0; !is_file && (r == 0 || r == -EEXIST); n++) {
        n += strcspn(name + n, "/");
        is_file = name[n] == '\0';
        if (snprintf(path, sizeof(path), "%s/%.*s", folder->path, (int)n, name) >=
            (int)sizeof(path))
            return -ENAMETOOLONG;
        r = archive_make(folder, path, is_file ? &fd : NULL);
    }
    if (r < 0)
        return r == -EEXIST ? 0 : r;
    return archive_copy(tar, fd, left);
}

int archive_unpack(const char *path, ArchiveFolder **ret) {
    _cleanup_(archive_folder_freep) ArchiveFolder *folder = calloc(1, sizeof(*folder));
    _cleanup_(tar_reader_freep) TarReader *tar = NULL;
    _cleanup_close_ int fd = -1;
    uint64_t left = archive_files_size_max;
    TarEntry entry;
    int r = folder ? archive_open(path, &fd) : -ENOMEM;

    if (r == 0)
        r = tar_reader_new(archive_read, &fd, &tar);
    if (r == 0)
        r = archive_make_root(folder);
    while (r == 0 && (r = tar_reader_next(tar, &entry)) > 0)
        r = entry.is_file && archive_takes(entry.name)
                ? archive_take(folder, tar, entry.name, &left)
                : 0;
    if (r < 0)
        return r;
    *ret = TAKE_PTR(folder);
    return 0;
}
