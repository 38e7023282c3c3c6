/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Commands print into a buffer, which is written in blocks of 256 KiB, so that a dump needs one
 * system call for some thousand records. The pager is a child that owns the terminal and reads from
 * a pipe. While it runs we ignore SIGPIPE and SIGINT: EPIPE shows that the pager was quit, and
 * SIGINT is for the pager.
 */

Output output_to(int fd) {
    return (Output){.fd = fd};
}

void output_done(Output *o) {
    buffer_done(&o->buffer);
}

int output_flush(Output *o) {
    size_t done = 0;

    if (!o->error)
        o->error = buffer_error(&o->buffer);
    while (!o->error && done < o->buffer.size) {
        ssize_t n = write(o->fd, o->buffer.data + done, o->buffer.size - done);

        if (n < 0 && errno != EINTR)
            o->error = -errno;
        else if (n > 0)
            done += (size_t)n;
    }
    buffer_clear(&o->buffer);
    return o->error;
}

static const char *output_pager_of_environment(void) {
    const char *pager = getenv("PROFD_PAGER");

    if (!pager)
        pager = getenv("PAGER");
    if (!pager)
        return "less || more";
    return *pager && strcmp(pager, "cat") != 0 ? pager : NULL;
}

/* The child: reads from the pipe and owns the terminal. Options of less: quit if it fits on the
 * screen, keep colours, cut no lines, do not clear the screen. */
__attribute__((noreturn)) static void run_pager(const char *pager, int from) {
    (void)dup2(from, STDIN_FILENO);
    (void)setenv("LESS", "FRXMK", 0);
    (void)setenv("LESSCHARSET", "utf-8", 0);
    (void)setenv("LESSSECURE", "1", 0);
    (void)execl("/bin/sh", "sh", "-c", pager, NULL);
    _exit(127);
}

void output_page(Output *o) {
    const char *pager = output_pager_of_environment(), *terminal = getenv("TERM");
    int fds[2];
    pid_t pid;

    if (o->pager || !pager || !isatty(o->fd) || !terminal || strcmp(terminal, "dumb") == 0)
        return;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return;
    pid = fork();
    if (pid == 0)
        run_pager(pager, fds[0]);
    (void)close(fds[0]);
    if (pid < 0) {
        (void)close(fds[1]);
        return;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    o->pager = pid;
    o->fd = fds[1];
}

int output_close(Output *o) {
    int r = output_flush(o);

    if (o->pager) {
        (void)close(o->fd);
        while (waitpid(o->pager, NULL, 0) < 0 && errno == EINTR)
            ;
        o->pager = 0;
        r = r == -EPIPE ? 0 : r;
    } else if (close(o->fd) < 0 && r == 0 && errno != EBADF && errno != EINTR)
        r = -errno;
    o->fd = -1;
    return r;
}
