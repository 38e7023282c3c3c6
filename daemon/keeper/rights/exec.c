/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "keeper/rights/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "keeper/rights/helper.h"
#include "keeper/rights/sandbox.h"
#include "util/file.h"
#include "util/macro.h"
#include "util/thread.h"

/*
 * A program is looked up by its path each time, so that a newly installed version is used. The
 * program that reads ELF files gets no log: it may outlive the keeper if a file system does not
 * answer, and a reader of the log would wait for it.
 */

enum {
    OOM_SCORE_MAX = 1000,
    ELF_KILLED_FIRST = 600, /* before the recorder */
};

void exec_be_killed_first(int first) {
    static const char path[] = "/proc/self/oom_score_adj";
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
    char text[32];
    int score;

    if (fd < 0 || file_read_text(path, text, sizeof(text)) < 0 || sscanf(text, "%d", &score) != 1)
        return;
    snprintf(text, sizeof(text), "%d", MIN(score + first, OOM_SCORE_MAX));
    (void)!write(fd, text, strlen(text));
}

void exec_program(const char *program, int fd, char *const *argv, char *last) {
    char *arguments[EXEC_ARGUMENTS_MAX + 2] = {};
    size_t n = 0;

    for (; argv[n] && n < EXEC_ARGUMENTS_MAX; n++)
        arguments[n] = argv[n];
    if (argv[n]) {
        errno = E2BIG;
        return;
    }
    arguments[n] = last;
    (void)execv(program, arguments);
    /* The recorder's user may not reach the program's folder, for example in a home folder. */
    if (errno == EACCES && fd >= 0)
        (void)execveat(fd, "", arguments, environ, AT_EMPTY_PATH);
}

void exec_elf(const KeeperHost *host, const char *program, int socket) {
    int fd = open(program, O_PATH | O_CLOEXEC);
    char name[] = "profd-elf", option[32], *argv[] = {name, option, NULL};
    sigset_t none;

    snprintf(option, sizeof(option), "--socket=%d", socket);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpgid(0, 0);
    (void)fcntl(socket, F_SETFD, 0);
    exec_be_killed_first(ELF_KILLED_FIRST);
    thread_limit_nice(THREAD_NICE_USUAL);
    if (sandbox_become_elf(host) == 0) {
        helper_let_go(socket, fd, true);
        exec_program(program, fd, argv, NULL);
    }
    /* Ends as if the program were not installed: nothing crashed, and no file is the cause. */
    (void)raise(SIGKILL);
    _exit(EXIT_FAILURE);
}
