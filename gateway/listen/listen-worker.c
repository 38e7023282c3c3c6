/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "listen/listen-worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "util/thread.h"

/*
 * Two queues under a mutex, works that wait and works that are done. The loop hears of the latter
 * by an eventfd.
 */

TAILQ_HEAD(ListenWorks, ListenWork);

struct ListenWorker {
    const char *name;
    size_t works_max;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_t thread;
    bool has_thread, stops;
    struct ListenWorks waiting, done;
    size_t n; /* handed in and not handed back */
    int event;
    LoopSource *source;
};

static void *listen_worker_run(void *userdata) {
    ListenWorker *worker = userdata;
    ListenWork *work;

    (void)pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->stops && TAILQ_EMPTY(&worker->waiting))
            (void)pthread_cond_wait(&worker->wake, &worker->mutex);
        if (worker->stops)
            break;
        work = TAILQ_FIRST(&worker->waiting);
        TAILQ_REMOVE(&worker->waiting, work, list);
        (void)pthread_mutex_unlock(&worker->mutex);
        work->run(work);
        (void)pthread_mutex_lock(&worker->mutex);
        TAILQ_INSERT_TAIL(&worker->done, work, list);
        (void)eventfd_write(worker->event, 1);
    }
    (void)pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

static int listen_worker_on_done(void *userdata) {
    ListenWorker *worker = userdata;
    struct ListenWorks done = TAILQ_HEAD_INITIALIZER(done);
    eventfd_t value;
    ListenWork *work;

    (void)eventfd_read(worker->event, &value);
    (void)pthread_mutex_lock(&worker->mutex);
    TAILQ_CONCAT(&done, &worker->done, list);
    (void)pthread_mutex_unlock(&worker->mutex);
    while ((work = TAILQ_FIRST(&done))) {
        TAILQ_REMOVE(&done, work, list);
        worker->n--;
        work->done(work);
    }
    return 0;
}

int listen_worker_new(Loop *loop, const char *name, size_t works_max, ListenWorker **ret) {
    _cleanup_(listen_worker_freep) ListenWorker *worker = calloc(1, sizeof(*worker));
    int r;

    if (!worker)
        return -ENOMEM;
    worker->name = name;
    worker->works_max = works_max;
    TAILQ_INIT(&worker->waiting);
    TAILQ_INIT(&worker->done);
    (void)pthread_mutex_init(&worker->mutex, NULL);
    (void)pthread_cond_init(&worker->wake, NULL);
    worker->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->event < 0)
        return -errno;
    r = loop_add_readable(loop, worker->event, listen_worker_on_done, worker, &worker->source);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(worker);
    return 0;
}

static void listen_worker_stop(ListenWorker *worker) {
    if (!worker->has_thread)
        return;
    (void)pthread_mutex_lock(&worker->mutex);
    worker->stops = true;
    (void)pthread_cond_signal(&worker->wake);
    (void)pthread_mutex_unlock(&worker->mutex);
    (void)pthread_join(worker->thread, NULL);
}

ListenWorker *listen_worker_free(ListenWorker *worker) {
    ListenWork *work;

    if (!worker)
        return NULL;
    listen_worker_stop(worker);
    TAILQ_CONCAT(&worker->done, &worker->waiting, list);
    while ((work = TAILQ_FIRST(&worker->done))) {
        TAILQ_REMOVE(&worker->done, work, list);
        work->done(work);
    }
    loop_source_free(worker->source);
    closep(&worker->event);
    (void)pthread_cond_destroy(&worker->wake);
    (void)pthread_mutex_destroy(&worker->mutex);
    free(worker);
    return NULL;
}

static int listen_worker_start(ListenWorker *worker) {
    ThreadOptions options = {.name = worker->name, .nice = THREAD_NICE_LAST};
    int r;

    if (worker->has_thread)
        return 0;
    r = thread_start(&options, listen_worker_run, worker, &worker->thread);
    worker->has_thread = r == 0;
    return r;
}

int listen_worker_submit(ListenWorker *worker, ListenWork *work) {
    int r = worker->n < worker->works_max ? listen_worker_start(worker) : -EBUSY;

    if (r < 0)
        return r;
    worker->n++;
    (void)pthread_mutex_lock(&worker->mutex);
    TAILQ_INSERT_TAIL(&worker->waiting, work, list);
    (void)pthread_cond_signal(&worker->wake);
    (void)pthread_mutex_unlock(&worker->mutex);
    return 0;
}
