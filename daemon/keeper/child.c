/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include "keeper/rights/exec.h"
#include "keeper/rights/sandbox.h"
#include "util/log.h"

/*
 * Forks, drops all rights, and executes the recorder. The program is looked up by its path each
 * time, so that a newly installed version is used. It leads its own process group, so ^C on a
 * terminal reaches only the keeper, which forwards it once.
 */

enum { KILLED_FIRST = 300 }; /* see exec_be_killed_first(): the next recorder finds the rings */

static void child_run(const KeeperHost *host, const char *program, char *const *argv, int socket) {
    _cleanup_close_ int fd = open(program, O_PATH | O_CLOEXEC);
    char option[32];
    sigset_t none;
    int r;

    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)fcntl(socket, F_SETFD, 0);
    exec_be_killed_first(KILLED_FIRST);
    r = sandbox_become_recorder(host);
    if (r < 0)
        log_error(r, "Failed to give up rights for the recorder: %m");
    else {
        snprintf(option, sizeof(option), "--recorder=%d", socket);
        exec_program(program, fd, argv, option);
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
        child_run(context->host, program, argv, pair[1]);
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
