/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/macro.h"

/*
 * A new thread inherits the nice value of the thread that starts it. That is the main thread, which
 * has a high priority because it drains the rings. So each thread first lowers its priority to what
 * it needs. Lowering a priority needs no rights; raising one does, so no thread raises its own.
 */

typedef struct Start {
    void *(*run)(void *userdata);
    void *userdata;
    char name[16];
    int nice;
} Start;

void thread_condition_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

bool thread_end(pthread_t thread, unsigned seconds) {
    const struct timespec pause = {.tv_nsec = NS_PER_MS};
    uint64_t end_ns = clock_monotonic_ns() + seconds * NS_PER_SECOND;

    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (clock_monotonic_ns() >= end_ns) {
            (void)pthread_detach(thread);
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

void thread_limit_nice(int nice) {
    id_t thread = (id_t)gettid();
    int now;

    errno = 0;
    now = getpriority(PRIO_PROCESS, thread);
    if (errno == 0 && now < nice)
        (void)setpriority(PRIO_PROCESS, thread, nice);
}

static void *thread_begin(void *userdata) {
    Start start = *(Start *)userdata;

    free(userdata);
    thread_limit_nice(start.nice);
    (void)pthread_setname_np(pthread_self(), start.name);
    return start.run(start.userdata);
}

static int thread_create(size_t stack_bytes, Start *start, pthread_t *ret) {
    pthread_attr_t attributes;
    sigset_t all, before;
    int r;

    (void)pthread_attr_init(&attributes);
    if (stack_bytes > 0)
        (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(ret, &attributes, thread_begin, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return r;
}

int thread_start(const ThreadOptions *options, void *(*run)(void *userdata), void *userdata,
                 pthread_t *ret) {
    Start *start = malloc(sizeof(*start));
    int r;

    if (!start)
        return -ENOMEM;
    *start = (Start){.run = run, .userdata = userdata, .nice = options->nice};
    assert(strlen(options->name) < sizeof(start->name));
    memcpy(start->name, options->name, strlen(options->name));
    r = thread_create(options->stack_bytes, start, ret);
    if (r < 0)
        free(start);
    return r;
}
