/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/source.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>

/*
 * The window over a file, a stream or memory. It has WINDOW bytes, more only if a caller needs more
 * in one piece, and takes what the system has available: reading from an open stream never waits
 * for more than the bytes that are needed.
 */

enum { WINDOW = 256 * 1024 };

int source_open_fd(Source *source, int fd) {
    struct stat st;
    bool regular;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    regular = S_ISREG(st.st_mode);
    *source = (Source){
        .fd = fd,
        .stream = !regular,
        .size = regular ? (uint64_t)st.st_size : UINT64_MAX,
        .limit = UINT64_MAX,
    };
    return 0;
}

void source_open_memory(Source *source, Bytes bytes) {
    *source = (Source){
        .fd = -1,
        .size = bytes.size,
        .limit = UINT64_MAX,
        .data = bytes.data,
        .end = bytes.size,
    };
}

void source_done(Source *source) {
    if (source->fd >= 0)
        (void)close(source->fd);
    free(source->buffer);
    *source = (Source){.fd = -1};
}

void source_seek(Source *source, uint64_t offset, uint64_t end) {
    assert(!source->stream);
    source->limit = end;
    source->ended = false;
    if (source->fd < 0) {
        source->end = (size_t)MIN(end, source->size);
        source->start = (size_t)MIN(offset, (uint64_t)source->end);
        return;
    }
    source->base = offset;
    source->start = source->end = 0;
}

uint64_t source_remaining(const Source *source) {
    uint64_t end = MIN(source->limit, source->size);

    if (end == UINT64_MAX)
        return UINT64_MAX;
    return end > source_offset(source) ? end - source_offset(source) : 0;
}

/* Moves the remaining bytes to the front if n bytes would not fit after them, and grows the buffer
 * if needed. */
static int source_make_room(Source *source, size_t n) {
    size_t left = source_left(source);
    uint8_t *grown;

    if (left == 0 || source->start + MAX(n, left + 1) > source->allocated) {
        if (left > 0 && source->start > 0)
            memmove(source->buffer, source->buffer + source->start, left);
        source->base += source->start;
        source->start = 0;
        source->end = left;
    }
    if (source->allocated >= MAX(n, (size_t)WINDOW))
        return 0;
    n = MAX(n, (size_t)WINDOW);
    grown = realloc(source->buffer, n);
    if (!grown)
        return -ENOMEM;
    source->data = source->buffer = grown;
    source->allocated = n;
    return 0;
}

/* Appends the result of one read: the number of bytes, 0 at the end, or a negative errno. */
static ssize_t source_read_some(Source *source) {
    uint64_t at = source->base + source->end;
    uint64_t room = MIN((uint64_t)(source->allocated - source->end),
                        source->limit > at ? source->limit - at : 0);
    ssize_t n;

    if (room == 0)
        return 0;
    for (;;) {
        uint8_t *to = source->buffer + source->end;

        n = source->stream ? read(source->fd, to, room) : pread(source->fd, to, room, (off_t)at);
        if (n >= 0)
            break;
        if (errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = source->fd, .events = POLLIN}, 1, -1);
        else if (errno != EINTR)
            return -errno;
    }
    source->end += (size_t)n;
    return n;
}

int source_want(Source *source, size_t n) {
    int r;

    if (source->fd < 0) {
        source->ended = source_left(source) < n;
        return 0;
    }
    while (source_left(source) < n && !source->ended) {
        ssize_t k;

        r = source_make_room(source, n);
        if (r < 0)
            return r;
        /* Offsets beyond the range of the system are beyond the end. */
        k = source->base + source->end > INT64_MAX ? 0 : source_read_some(source);
        if (k < 0)
            return (int)k;
        source->ended = k == 0;
    }
    return 0;
}

int source_skip(Source *source, uint64_t n) {
    size_t here = (size_t)MIN(n, (uint64_t)source_left(source));
    int r;

    source->start += here;
    n -= here;
    if (n == 0)
        return 0;
    if (source->fd < 0) {
        source->ended = true;
        return 0;
    }
    if (!source->stream) {
        n = MIN(n, source_remaining(source));
        source_seek(source, source_offset(source) + n, source->limit);
        return 0;
    }
    while (n > 0 && !source->ended) {
        r = source_want(source, 1);
        if (r < 0)
            return r;
        here = (size_t)MIN(n, (uint64_t)source_left(source));
        source->start += here;
        n -= here;
    }
    return 0;
}

int source_read_at(const Source *source, uint64_t offset, void *buffer, size_t n) {
    uint8_t *to = buffer;

    assert(!source->stream);
    if (offset > source->size || n > source->size - offset)
        return -ENODATA;
    if (n == 0)
        return 0;
    if (source->fd < 0) {
        memcpy(to, source->data + offset, n);
        return 0;
    }
    while (n > 0) {
        ssize_t k = pread(source->fd, to, n, (off_t)offset);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        if (k == 0)
            return -ENODATA;
        to += k;
        offset += (uint64_t)k;
        n -= (size_t)k;
    }
    return 0;
}
