/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/line.h"

#include <errno.h>
#include <string.h>

/*
 * One buffer: lines are returned as pointers into it, and the rest moves to the front before the
 * next read. Files of /proc return a page at a time, so the cost of a read is mostly the kernel's.
 */

void line_reader_init(LineReader *reader, int fd) {
    reader->fd = fd;
    reader->begin = reader->end = 0;
    reader->at_end = reader->skips = false;
}

static int line_fill(LineReader *l) {
    ssize_t n;

    if (l->begin > 0) {
        memmove(l->data, l->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->end == LINE_READER_SIZE) {
        l->skips = true;
        l->end = 0;
    }
    do
        n = read(l->fd, l->data + l->end, LINE_READER_SIZE - l->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    l->end += (size_t)n;
    l->at_end = n == 0;
    return 0;
}

int line_reader_next(LineReader *l, char **ret_line, size_t *ret_size) {
    size_t looked_at = 0;

    for (;;) {
        char *line = l->data + l->begin;
        size_t n = l->end - l->begin;
        char *newline = memchr(line + looked_at, '\n', n - looked_at);
        size_t size = newline ? (size_t)(newline - line) : n;
        bool skips = l->skips;
        int r;

        if (newline || (l->at_end && n > 0)) {
            l->begin += size + (newline ? 1 : 0);
            l->skips = false;
            looked_at = 0;
            if (skips)
                continue;
            line[size] = '\0';
            *ret_line = line;
            *ret_size = size;
            return 1;
        }
        if (l->at_end)
            return 0;
        r = line_fill(l);
        if (r < 0)
            return r;
        looked_at = n < LINE_READER_SIZE ? n : 0;
    }
}
