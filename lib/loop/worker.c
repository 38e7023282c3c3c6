/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop/worker.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>

#include "util/clock.h"
#include "util/thread.h"

/*
 * Two lists under one mutex: jobs that wait and jobs that are done. An eventfd makes the loop
 * collect those that are done. The thread touches nothing but these lists.
 */

typedef struct WorkerItem {
    STAILQ_ENTRY(WorkerItem) list;
    WorkerJob job;
} WorkerItem;

typedef STAILQ_HEAD(, WorkerItem) WorkerItems;

struct Worker {
    WorkerOptions options;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake, ended;
    WorkerItems waiting, done;
    bool has_thread, is_ending, has_ended;
    size_t n; /* added and not handed back */
    int event;
    LoopSource *source;
};

static WorkerItem *worker_take(WorkerItems *items) {
    WorkerItem *item = STAILQ_FIRST(items);

    if (item)
        STAILQ_REMOVE_HEAD(items, list);
    return item;
}

/* NULL: the thread has to end. The caller holds the mutex. */
static WorkerItem *worker_next(Worker *worker) {
    while (!worker->is_ending && STAILQ_EMPTY(&worker->waiting))
        pthread_cond_wait(&worker->wake, &worker->mutex);
    return worker->is_ending && !worker->options.finishes ? NULL : worker_take(&worker->waiting);
}

static void *worker_run(void *userdata) {
    Worker *worker = userdata;
    WorkerItem *item;

    pthread_mutex_lock(&worker->mutex);
    while ((item = worker_next(worker))) {
        pthread_mutex_unlock(&worker->mutex);
        item->job.run(item->job.userdata);
        pthread_mutex_lock(&worker->mutex);
        STAILQ_INSERT_TAIL(&worker->done, item, list);
        (void)eventfd_write(worker->event, 1);
    }
    worker->has_ended = true;
    pthread_cond_signal(&worker->ended);
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

/* `all`: including the jobs that were not started. */
static void worker_hand_back(Worker *worker, bool all) {
    for (;;) {
        WorkerItem *item;

        pthread_mutex_lock(&worker->mutex);
        item = worker_take(&worker->done);
        if (!item && all)
            item = worker_take(&worker->waiting);
        pthread_mutex_unlock(&worker->mutex);
        if (!item)
            return;
        worker->n--;
        item->job.done(item->job.userdata);
        free(item);
    }
}

static int worker_on_done(void *userdata) {
    Worker *worker = userdata;
    eventfd_t n;

    (void)eventfd_read(worker->event, &n);
    worker_hand_back(worker, false);
    return 0;
}

static void worker_init(Worker *worker) {

    STAILQ_INIT(&worker->waiting);
    STAILQ_INIT(&worker->done);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->wake, NULL);
    thread_condition_init(&worker->ended);
    worker->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static int worker_start(Worker *worker) {
    const ThreadOptions options = {.name = worker->options.name,
                                   .nice = worker->options.nice,
                                   .stack_bytes = worker->options.stack_bytes};
    int r = worker->has_thread ? 0 : thread_start(&options, worker_run, worker, &worker->thread);

    worker->has_thread = r == 0;
    return r;
}

int worker_new(Loop *loop, const WorkerOptions *options, Worker **ret) {
    _cleanup_(worker_freep) Worker *worker = calloc(1, sizeof(*worker));
    int r;

    if (!worker)
        return -ENOMEM;
    worker->options = *options;
    worker_init(worker);
    if (worker->event < 0)
        return -errno;
    r = loop_add_readable(loop, worker->event, worker_on_done, worker, &worker->source);
    if (r == 0 && !options->starts_on_work)
        r = worker_start(worker);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(worker);
    return 0;
}

static bool worker_end_thread(Worker *worker) {
    const struct timespec at = clock_timespec(clock_monotonic_ns() + worker->options.end_ns);
    bool has_ended;
    int r = 0;

    pthread_mutex_lock(&worker->mutex);
    worker->is_ending = true;
    pthread_cond_signal(&worker->wake);
    while (worker->options.end_ns > 0 && !worker->has_ended && r == 0)
        r = pthread_cond_timedwait(&worker->ended, &worker->mutex, &at);
    has_ended = worker->options.end_ns == 0 || worker->has_ended;
    pthread_mutex_unlock(&worker->mutex);
    if (has_ended)
        (void)pthread_join(worker->thread, NULL);
    else
        (void)pthread_detach(worker->thread);
    return has_ended;
}

bool worker_end(Worker *worker) {
    bool has_ended;

    if (!worker)
        return true;
    has_ended = !worker->has_thread || worker_end_thread(worker);
    loop_source_free(worker->source);
    worker_hand_back(worker, true);
    /* The thread hangs in the kernel and may still wake up, so leak the struct. */
    if (!has_ended)
        return false;
    closep(&worker->event);
    pthread_mutex_destroy(&worker->mutex);
    pthread_cond_destroy(&worker->wake);
    pthread_cond_destroy(&worker->ended);
    free(worker);
    return true;
}

Worker *worker_free(Worker *worker) {
    (void)worker_end(worker);
    return NULL;
}

int worker_add(Worker *worker, const WorkerJob *job, size_t jobs_max) {
    int r = worker->n < jobs_max ? worker_start(worker) : -EBUSY;
    WorkerItem *item = r < 0 ? NULL : malloc(sizeof(*item));

    if (!item)
        return r < 0 ? r : -ENOMEM;
    item->job = *job;
    worker->n++;
    pthread_mutex_lock(&worker->mutex);
    STAILQ_INSERT_TAIL(&worker->waiting, item, list);
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->mutex);
    return 0;
}
