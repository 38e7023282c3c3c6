/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "keeper/sandbox.h"
#include "util/file.h"
#include "util/log.h"

/*
 * Fork, give up everything, exec. The program is found by its path each time, so that one that was
 * installed meanwhile is taken. It leads a process group of its own: ^C on a terminal reaches the
 * keeper alone, which passes it on once.
 */

enum {
    ARGUMENTS_MAX = 64,
    KILLED_FIRST = 300, /* thousandths of the limit */
    OOM_SCORE_MAX = 1000
};

/* fd: the same program, opened while we still could. */
static void exec_program(const char *program, int fd, char *const *argv, int socket) {
    char *arguments[ARGUMENTS_MAX + 2] = {}, option[32];
    size_t n = 0;

    for (; argv[n] && n < ARGUMENTS_MAX; n++)
        arguments[n] = argv[n];
    if (argv[n]) {
        errno = E2BIG;
        return;
    }
    snprintf(option, sizeof(option), "--recorder=%d", socket);
    arguments[n] = option;
    (void)execv(program, arguments);
    /* Its user may not reach the folder that it lies in, as in somebody's home. */
    if (errno == EACCES && fd >= 0)
        (void)execveat(fd, "", arguments, environ, AT_EMPTY_PATH);
}

/* Where a control group is out of memory the kernel takes one of it: rather the one that is started
 * again than the one that holds the rings. While we may still write there. */
static void be_killed_first(void) {
    static const char path[] = "/proc/self/oom_score_adj";
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    char text[32];
    int score;

    if (fd < 0 || file_read_text(path, text, sizeof(text)) < 0 || sscanf(text, "%d", &score) != 1)
        return;
    snprintf(text, sizeof(text), "%d", MIN(score + KILLED_FIRST, OOM_SCORE_MAX));
    (void)!write(fd, text, strlen(text));
}

static void run_child(const KeeperHost *host, const char *program, char *const *argv, int socket) {
    _cleanup_close_ int fd = open(program, O_PATH | O_CLOEXEC);
    sigset_t none;
    int r;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)fcntl(socket, F_SETFD, 0);
    be_killed_first();
    r = sandbox_become_recorder(host);
    if (r < 0)
        log_error(r, "Failed to give up rights for the recorder: %m");
    else {
        exec_program(program, fd, argv, socket);
        log_error(-errno, "Failed to run '%s' as the recorder: %m", program);
    }
    _exit(EXIT_FAILURE);
}

int child_start(Child *child, ServeContext *context, const char *program, char *const *argv,
                bool may_take_over) {
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return log_error(-errno, "Failed to make a socket for the recorder: %m");
    pid = fork();
    if (pid == 0)
        run_child(context->host, program, argv, pair[1]);
    closep(&pair[1]);
    if (pid < 0) {
        closep(&pair[0]);
        return log_error(-errno, "Failed to fork for the recorder: %m");
    }
    *child = (Child){.pid = pid,
                     .link = {.context = context, .fd = pair[0], .may_take_over = may_take_over}};
    return 0;
}

void child_signal(const Child *child, int number) {
    if (child->pid > 0)
        (void)kill(child->pid, number);
}

void child_close(Child *child) {
    closep(&child->link.fd);
    *child = (Child){.link.fd = -1};
}
