/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/file.h"

/*
 * Reads and replaces the files of a destination. The state is synced and renamed; when it is older
 * than what happened, intervals are sent twice, and none is lost. The number of requests whose end
 * is not in the state has a file of its own, since it changes with each request: after a kill it
 * says how many may come twice, and a power failure may lose it.
 */

enum {
    STATE_FILE_MAX = 256 * 1024,
    STATE_FLIGHTS_MAX = 1024,
};

/* A path below a folder, with one of our suffixes. */
typedef struct StatePath {
    char text[PATH_MAX];
} StatePath;

static int state_file_path(const char *folder, const char *name, const char *suffix,
                           StatePath *ret) {
    int n = snprintf(ret->text, sizeof(ret->text), "%s/%s%s", folder, name, suffix);

    return n < 0 || (size_t)n >= sizeof(ret->text) ? -ENAMETOOLONG : 0;
}

bool state_file_is_name(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < NAME_MAX - 16;
}

static int state_file_read(int fd, Buffer *text) {
    for (;;) {
        uint8_t *to = buffer_reserve(text, 4096);
        ssize_t n = to ? read(fd, to, 4096) : -1;

        if (!to)
            return -ENOMEM;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            return 0;
        if (n > 0)
            buffer_commit(text, (size_t)n);
        if (text->size > STATE_FILE_MAX)
            return -EFBIG;
    }
}

static int state_file_set_aside(const char *folder, const char *name, const char *path) {
    StatePath aside;
    int r = state_file_path(folder, name, STATE_SUFFIX ".damaged", &aside);

    if (r == 0 && rename(path, aside.text) < 0)
        r = -errno;
    return r < 0 ? r : -EBADMSG;
}

int state_file_load(const char *folder, const char *name, SendState *ret,
                    const char **ret_problem) {
    _cleanup_(buffer_done) Buffer text = {};
    _cleanup_close_ int fd = -1;
    StatePath path;
    int r = state_file_path(folder, name, STATE_SUFFIX, &path);

    if (r < 0)
        return r;
    fd = open(path.text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    r = state_file_read(fd, &text);
    if (r == -EFBIG) {
        *ret_problem = "it is too long";
        return state_file_set_aside(folder, name, path.text);
    }
    if (r == 0)
        r = send_state_parse(buffer_bytes(&text), ret, ret_problem);
    return r == -EBADMSG ? state_file_set_aside(folder, name, path.text) : r;
}

static int state_file_sync_folder(const char *folder) {
    _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int state_file_save(const char *folder, const char *name, const char *suffix, const Buffer *text) {
    _cleanup_close_ int fd = -1;
    StatePath path, scratch;
    int r = state_file_path(folder, name, suffix, &path);

    if (r == 0 && snprintf(scratch.text, sizeof(scratch.text), "%s.new", path.text) >= PATH_MAX)
        r = -ENAMETOOLONG;
    if (r < 0)
        return r;
    fd = open(scratch.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (fd < 0)
        return -errno;
    r = file_write_all(fd, text->data, text->size);
    if (r == 0 && (fdatasync(fd) < 0 || rename(scratch.text, path.text) < 0))
        r = -errno;
    return r < 0 ? r : state_file_sync_folder(folder);
}

int state_file_open_flights(const char *folder, const char *name) {
    StatePath path;
    int r = state_file_path(folder, name, ".flight", &path), fd;

    if (r < 0)
        return r;
    fd = open(path.text, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    return fd < 0 ? -errno : fd;
}

/* Always as long, so that it needs no truncation. */
void state_file_put_flights(int fd, unsigned n) {
    char text[16];
    int size = snprintf(text, sizeof(text), "%-8u\n", MIN(n, (unsigned)STATE_FLIGHTS_MAX));

    (void)file_write_all_at(fd, text, (size_t)size, 0);
}

unsigned state_file_flights(const char *folder, const char *name) {
    char text[16] = "", *end;
    StatePath path;
    unsigned long n;

    if (state_file_path(folder, name, ".flight", &path) < 0 ||
        file_read_text(path.text, text, sizeof(text)) <= 0)
        return 0;
    n = strtoul(text, &end, 10);
    end += strspn(end, " ");
    return *end == '\0' && n <= STATE_FLIGHTS_MAX ? (unsigned)n : 0;
}
