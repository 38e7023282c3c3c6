/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/line/line-find.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "symbol/line/line-child.h"
#include "util/clock.h"
#include "util/macro.h"

/*
 * A reply is, for each address, the number of lines, and for each of them the sizes of its two
 * texts, the line, and the texts. The child knows the addresses since it is a copy of us.
 */

/* 1: more may come; 0: the end. */
static int line_find_read(int fd, uint64_t until_ns, Buffer *ret) {
    uint64_t now_ns = clock_monotonic_ns();
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint8_t *to;
    ssize_t n;

    if (now_ns >= until_ns || ret->size >= LINE_REPLY_MAX)
        return 0;
    if (poll(&ready, 1, (int)((until_ns - now_ns) / NS_PER_MS) + 1) <= 0)
        return 1;
    to = buffer_reserve(ret, 64 << 10);
    n = to ? read(fd, to, 64 << 10) : -1;
    if (n <= 0)
        return n < 0 && errno == EINTR;
    buffer_commit(ret, (size_t)n);
    return 1;
}

static void line_find_end(pid_t child) {
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

int line_find(int fd, int alternate, const uint64_t *addresses, size_t n, Buffer *ret) {
    uint64_t until_ns = clock_monotonic_ns() + LINE_SECONDS_MAX * NS_PER_SECOND;
    int pipes[2];
    pid_t child;

    if (pipe2(pipes, O_CLOEXEC) < 0)
        return -errno;
    child = fork();
    if (child == 0)
        line_child_run(fd, alternate, pipes[1], addresses, n);
    closep(&pipes[1]);
    if (child < 0) {
        closep(&pipes[0]);
        return -EAGAIN;
    }
    while (line_find_read(pipes[0], until_ns, ret) > 0)
        ;
    closep(&pipes[0]);
    line_find_end(child);
    return buffer_error(ret);
}

size_t line_next(Cursor *reply, SourceLine ret[LINES_MAX]) {
    uint32_t n = cursor_u32(reply);

    if (reply->failed || n > LINES_MAX)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t function = cursor_u32(reply), file = cursor_u32(reply), line = cursor_u32(reply);

        if (function > LINE_TEXT_MAX || file > LINE_TEXT_MAX)
            cursor_fail(reply);
        ret[i] = (SourceLine){.line = line, .function = cursor_bytes(reply, function)};
        (void)cursor_take(reply, 1);
        ret[i].file = cursor_bytes(reply, file);
        if (reply->failed)
            return 0;
    }
    return n;
}
