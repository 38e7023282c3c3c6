/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/serve/proc-copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keeper/serve/procmap.h"

/*
 * The kernel answers only while nobody changes the memory of the process, and a user's FUSE server
 * can make such a change, or an exec, last for ever. So a helper, which is killed if it waits too
 * long, reads the texts of a process and copies them to a file that nobody has to wait for. The
 * copy has the kernel's own format, also if the kernel was asked for single mappings, which costs
 * less: so the recorder, which has no rights, is the only one that parses it. Here a line is only
 * examined for its 'x'.
 *
 * The stat file is opened first and read again last: the kernel answers only while that very
 * process exists, so what was read in between belongs to it.
 */

enum {
    LINE_MAX_BYTES = 64 << 10, /* a longer line is left out */
    BUFFER_SIZE = 64 << 10,
    COPY_MAX_BYTES = 64 << 20, /* a recorder takes less */
    QUERIES_MAX = 1 << 20,     /* many more mappings than can exist at a time */
};

typedef struct ProcCopy {
    int fd;
    size_t used, written;
    char data[BUFFER_SIZE];
} ProcCopy;

static int proc_copy_flush(ProcCopy *copy) {
    size_t done = 0;

    while (done < copy->used) {
        ssize_t n = write(copy->fd, copy->data + done, copy->used - done);

        if (n < 0)
            return -errno;
        done += (size_t)n;
    }
    copy->written += done;
    copy->used = 0;
    return 0;
}

/* -EFBIG: the copy is complete enough. */
static int proc_copy_add(ProcCopy *copy, const char *text, size_t n) {
    while (n > 0) {
        size_t part = MIN(n, sizeof(copy->data) - copy->used);
        int r;

        memcpy(copy->data + copy->used, text, part);
        copy->used += part;
        text += part;
        n -= part;
        r = copy->used == sizeof(copy->data) ? proc_copy_flush(copy) : 0;
        if (r < 0)
            return r;
    }
    return copy->written >= COPY_MAX_BYTES ? -EFBIG : 0;
}

/* The kernel escapes only newlines in its text. */
static int proc_copy_add_name(ProcCopy *copy, const char *name) {
    int r = 0;

    while (r == 0 && *name) {
        size_t n = strcspn(name, "\n");

        r = proc_copy_add(copy, name, n);
        name += n;
        if (r == 0 && *name == '\n') {
            r = proc_copy_add(copy, "\\012", 4);
            name++;
        }
    }
    return r;
}

static int proc_copy_add_mapping(ProcCopy *copy, const ProcmapQuery *q, const char *name) {
    char line[160];
    int n = snprintf(
        line, sizeof(line), "%" PRIx64 "-%" PRIx64 " %c%c%c%c %08" PRIx64 " %02x:%02x %" PRIu64 " ",
        q->vma_start, q->vma_end, q->vma_flags & PROCMAP_READABLE ? 'r' : '-',
        q->vma_flags & PROCMAP_WRITABLE ? 'w' : '-', q->vma_flags & PROCMAP_EXECUTABLE ? 'x' : '-',
        q->vma_flags & PROCMAP_SHARED ? 's' : 'p', q->vma_offset, q->major, q->minor, q->inode);
    int r = proc_copy_add(copy, line, (size_t)n);

    if (r == 0)
        r = proc_copy_add_name(copy, name);
    return r == 0 ? proc_copy_add(copy, "\n", 1) : r;
}

/* Asks for one mapping: -ENOENT: there is none. -ENOTTY, -ENAMETOOLONG: use the text instead. */
static int proc_copy_ask(int maps, uint64_t flags, uint64_t address, ProcCopy *copy,
                         uint64_t *ret_end) {
    char name[PATH_MAX];
    ProcmapQuery q = {.flags = flags,
                      .address = address,
                      .name_address = (uintptr_t)name,
                      .name_size = sizeof(name)};
    int r = procmap_query(maps, &q);

    if (r < 0)
        return r;
    name[q.name_size > 0 ? MIN((size_t)q.name_size, sizeof(name)) - 1 : 0] = '\0';
    *ret_end = q.vma_end;
    return q.vma_end <= address ? -EBADMSG : proc_copy_add_mapping(copy, &q, name);
}

static int proc_copy_ask_for_code(int maps, ProcCopy *copy) {
    uint64_t from = 0;
    int r = 0;

    for (size_t n = 0; r == 0 && n < QUERIES_MAX; n++)
        r = proc_copy_ask(maps, PROCMAP_COVERING_OR_NEXT | PROCMAP_EXECUTABLE, from, copy, &from);
    return r;
}

/* "START-END r-xp …" */
static bool proc_copy_is_code(const char *line, size_t n) {
    const char *space = memchr(line, ' ', n);

    return space && space + 3 < line + n && space[3] == 'x';
}

/* Copies the lines of which the end has been read; returns how many bytes they have. */
static int proc_copy_copy_lines(const char *data, size_t n, bool all, ProcCopy *copy,
                                size_t *ret_done) {
    const char *newline;
    size_t done = 0;
    int r = 0;

    while (r == 0 && (newline = memchr(data + done, '\n', n - done))) {
        size_t size = (size_t)(newline + 1 - (data + done));

        if (all || proc_copy_is_code(data + done, size))
            r = proc_copy_add(copy, data + done, size);
        done += size;
    }
    *ret_done = done;
    return r;
}

static int proc_copy_copy_text(int maps, bool all, ProcCopy *copy) {
    static char data[LINE_MAX_BYTES];
    bool skips = false; /* the rest of a line that is too long */
    size_t kept = 0;
    ssize_t n;
    int r = 0;

    if (lseek(maps, 0, SEEK_SET) < 0)
        return -errno;
    while (r == 0 && (n = read(maps, data + kept, sizeof(data) - kept)) != 0) {
        size_t begin = 0, end = kept + (size_t)MAX(n, (ssize_t)0), done;
        const char *newline = skips ? memchr(data, '\n', end) : NULL;

        if (n < 0)
            return -errno;
        if (skips)
            begin = newline ? (size_t)(newline + 1 - data) : end;
        skips = skips && !newline;
        r = proc_copy_copy_lines(data + begin, end - begin, all, copy, &done);
        kept = end - begin - done;
        memmove(data, data + begin + done, kept);
        if (kept == sizeof(data)) {
            skips = true;
            kept = 0;
        }
    }
    return r;
}

/* Drops the maps that were added so far, but not what is before them. */
static int proc_copy_start_again(ProcCopy *copy) {
    copy->used = copy->written > 0 ? 0 : KEEPER_STATS_BYTES;
    if (copy->written == 0)
        return 0;
    copy->written = KEEPER_STATS_BYTES;
    return ftruncate(copy->fd, KEEPER_STATS_BYTES) < 0 ||
                   lseek(copy->fd, KEEPER_STATS_BYTES, SEEK_SET) < 0
               ? -errno
               : 0;
}

static int proc_copy_copy(int maps, const KeeperRequest *request, ProcCopy *copy) {
    static bool has_no_query; /* the kernel is older than 6.11 */
    KeeperMaps what = (KeeperMaps)request->file;
    uint64_t end;
    int r = -ENOTTY;

    if (!has_no_query && what == KEEPER_MAPS_AT)
        r = proc_copy_ask(maps, 0, request->start, copy, &end);
    else if (!has_no_query && what == KEEPER_MAPS_CODE)
        r = proc_copy_ask_for_code(maps, copy);
    has_no_query |= r == -ENOTTY && what != KEEPER_MAPS_ALL;
    if (r == -ENOTTY || r == -ENAMETOOLONG) {
        r = proc_copy_start_again(copy);
        if (r == 0)
            r = proc_copy_copy_text(maps, what != KEEPER_MAPS_CODE, copy);
    }
    return r == -ENOENT || r == -EFBIG ? 0 : r;
}

/* Adds the maps behind the stat texts. */
static int proc_copy_add_all(const KeeperRequest *request, ProcCopy *copy) {
    _cleanup_close_ int maps = -1;
    char path[64];
    int r;

    if (request->file == KEEPER_MAPS_NONE)
        return 0;
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/maps", request->pid,
             request->tid);
    maps = open(path, O_RDONLY | O_CLOEXEC);
    if (maps < 0)
        return -errno;
    r = proc_copy_copy(maps, request, copy);
    /* A process that ends while it is read has no more of them. */
    return r == -ESRCH ? 0 : r;
}

/* -ESRCH: the process is gone. */
static int proc_copy_read_stat(int stat, char ret[KEEPER_STAT_BYTES]) {
    ssize_t n = pread(stat, ret, KEEPER_STAT_BYTES, 0);

    if (n <= 0)
        return n < 0 ? -errno : -ESRCH;
    memset(ret + n, 0, KEEPER_STAT_BYTES - (size_t)n);
    return 0;
}

/* Writes what is left, which is nearly always all of it, and the second stat text to its place. */
static int proc_copy_finish(ProcCopy *copy, const char after[KEEPER_STAT_BYTES]) {
    int r;

    if (copy->written == 0)
        memcpy(copy->data + KEEPER_STAT_BYTES, after, KEEPER_STAT_BYTES);
    else if (pwrite(copy->fd, after, KEEPER_STAT_BYTES, KEEPER_STAT_BYTES) != KEEPER_STAT_BYTES)
        return -EIO;
    r = proc_copy_flush(copy);
    return r == 0 && lseek(copy->fd, KEEPER_STATS_BYTES, SEEK_SET) < 0 ? -errno : r;
}

int proc_copy_read(const KeeperRequest *request, uint32_t *ret_error, int *ret_fd) {
    _cleanup_close_ int stat = -1, to = -1;
    char path[32], after[KEEPER_STAT_BYTES];
    static ProcCopy copy;
    int r, maps = 0;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", request->pid);
    stat = open(path, O_RDONLY | O_CLOEXEC);
    if (stat < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    to = memfd_create("process", MFD_CLOEXEC);
    if (to < 0)
        return -errno;
    copy.fd = to;
    copy.written = 0;
    copy.used = KEEPER_STATS_BYTES;
    r = proc_copy_read_stat(stat, copy.data);
    if (r == 0)
        maps = proc_copy_add_all(request, &copy);
    if (r == 0)
        r = proc_copy_read_stat(stat, after);
    if (r == 0)
        r = proc_copy_finish(&copy, after);
    if (r < 0)
        return r;
    *ret_error = (uint32_t)-maps;
    *ret_fd = TAKE_FD(to);
    return 0;
}
