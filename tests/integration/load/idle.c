/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "load.h"

/*
 * Many processes that do nothing, each with some threads that do nothing: what a table of
 * processes has to be filled with. Says "ready" when all are there, and stays until killed.
 *
 * Usage: idle PROCESSES [THREADS]
 */

enum { STACK_BYTES = 64 << 10 };

static void *wait_for_ever(void *unused) {
    for (;;)
        (void)pause();
    return unused;
}

/* Closes what tells the parent that its threads are there. */
static void idle(uint64_t threads, int told) {
    pthread_attr_t attr;
    pthread_t thread;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&thread, &attr, wait_for_ever, NULL) != 0)
            load_die("pthread_create");
    (void)close(told);
    (void)wait_for_ever(NULL);
}

int main(int argc, char **argv) {
    uint64_t n, threads;
    int told[2];
    char byte;

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "Usage: idle PROCESSES [THREADS]\n");
        return 2;
    }
    n = load_number(argv[1]);
    threads = argc > 2 ? load_number(argv[2]) : 0;
    if (pipe(told) < 0)
        load_die("pipe");
    for (uint64_t i = 0; i < n; i++)
        if (load_fork() == 0) {
            (void)close(told[0]);
            idle(threads, told[1]);
        }
    (void)close(told[1]);
    while (read(told[0], &byte, 1) > 0)
        continue;
    printf("ready\n");
    fflush(stdout);
    (void)wait_for_ever(NULL);
    return EXIT_SUCCESS;
}
