/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts all threads of profd but the main one. */

#include <pthread.h>
#include <stddef.h>

/* What a thread gets when every CPU is busy, as nice values: the smaller, the sooner it runs. The
 * main thread keeps what the process has, and no other thread is favoured as much. */
enum {
    THREAD_NICE_PROMPT = -10, /* somebody loses data when it does not keep up */
    THREAD_NICE_USUAL = 0,
    THREAD_NICE_LAST = 5, /* recording and all others come first */
};

typedef struct ThreadOptions {
    const char *name;   /* up to 15 bytes, as ps shows it */
    int nice;           /* not favoured more than this */
    size_t stack_bytes; /* 0: as usual */
} ThreadOptions;

/* All signals are blocked in it: they are for the main thread. */
int thread_start(const ThreadOptions *options, void *(*run)(void *userdata), void *userdata,
                 pthread_t *ret);
/* The calling thread is favoured no more than this from now on. */
void thread_limit_nice(int nice);
