/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Starts so many processes a second, each of the next of these programs, and prints how many it
 * started. Without arguments it is such a program, and works for half a millisecond.
 *
 * Usage: churn RATE SECONDS PROGRAM...
 */

enum { WORK_ROUNDS = 400000 };

static uint64_t now_ns(void) {
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static uint64_t churn_work(uint64_t x) {
    for (unsigned i = 0; i < WORK_ROUNDS; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

int main(int argc, char **argv) {
    uint64_t begin = now_ns(), rate, seconds, n = 0;

    if (argc < 4)
        return churn_work((uint64_t)getpid()) == 0;
    rate = strtoull(argv[1], NULL, 10);
    seconds = strtoull(argv[2], NULL, 10);
    (void)signal(SIGCHLD, SIG_IGN);
    while (rate > 0 && now_ns() - begin < seconds * 1000000000) {
        uint64_t due = begin + n * 1000000000 / rate, now = now_ns();
        char *program = argv[3 + n % (uint64_t)(argc - 3)], *arguments[] = {program, NULL};
        pid_t pid;

        if (now < due) {
            (void)usleep((useconds_t)((due - now) / 1000));
            continue;
        }
        if (posix_spawn(&pid, program, NULL, NULL, arguments, NULL) != 0)
            return EXIT_FAILURE;
        n++;
    }
    printf("%llu\n", (unsigned long long)n);
    return EXIT_SUCCESS;
}
