/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "load.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/*
 * What the loads share. They are programs that a test starts and kills: where something is
 * refused they say so and end, and what they forked ends with them.
 */

uint64_t load_now_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * LOAD_NS_PER_S + (uint64_t)t.tv_nsec;
}

void load_sleep_ns(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / LOAD_NS_PER_S),
                         .tv_nsec = (long)(ns % LOAD_NS_PER_S)};

    (void)nanosleep(&t, NULL);
}

void load_die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

int load_fork(void) {
    pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        load_die("fork");
    if (pid > 0)
        return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    return 0;
}

uint64_t load_number(const char *text) {
    char *end;
    unsigned long long n;

    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno || end == text || *end) {
        errno = EINVAL;
        load_die(text);
    }
    return n;
}
