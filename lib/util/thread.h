/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Starts all threads of profd except the main one. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The priority of a thread when every CPU is busy, as a nice value: the smaller, the sooner it
 * runs. The main thread keeps the value of the process, and no other thread has a higher
 * priority. */
enum {
    THREAD_NICE_PROMPT = -10, /* data is lost if it does not keep up */
    THREAD_NICE_USUAL = 0,
    THREAD_NICE_LAST = 5, /* recording and other programs come first */
};

typedef struct ThreadOptions {
    const char *name;   /* up to 15 bytes, as shown by ps */
    int nice;           /* the smallest nice value it may have */
    size_t stack_bytes; /* 0: the default */
} ThreadOptions;

/* All signals are blocked in it: the main thread handles them. */
int thread_start(const ThreadOptions *options, void *(*run)(void *userdata), void *userdata,
                 pthread_t *ret);
/* Waits for its end, at most so many seconds. False: it hangs in the kernel and may still wake up,
 * so everything that it uses must stay allocated. */
bool thread_end(pthread_t thread, unsigned seconds);
/* A condition whose timed waits end at a time of CLOCK_MONOTONIC. */
void thread_condition_init(pthread_cond_t *condition);
/* From now on the calling thread has at least this nice value. */
void thread_limit_nice(int nice);
