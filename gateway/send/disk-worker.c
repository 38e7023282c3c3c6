/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/disk-worker.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/queue.h>

#include "util/thread.h"

/*
 * Each destination has a worker of its own, so that a folder on a file system that hangs, or a disk
 * that takes a second to sync, holds up this destination and neither another one nor the loop. Jobs
 * wait in one list and return in another one; an eventfd wakes the loop for those that returned.
 */

enum { DISK_STACK_BYTES = 256 * 1024 };

struct DiskJob {
    STAILQ_ENTRY(DiskJob) list;
    DiskWork work;
    int error;
    bool is_forgotten;
};

typedef STAILQ_HEAD(, DiskJob) DiskJobs;

struct DiskWorker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    DiskJobs waiting, ended;
    LoopSource *source;
    int fd;
    bool is_started, is_over;
};

static void disk_job_free(DiskJob *job) {
    job->work.free_arg(job->work.arg);
    free(job);
}

/* The next job, or NULL when there will be none. */
static DiskJob *disk_worker_take(DiskWorker *worker) {
    DiskJob *job;

    pthread_mutex_lock(&worker->lock);
    while (STAILQ_EMPTY(&worker->waiting) && !worker->is_over)
        pthread_cond_wait(&worker->changed, &worker->lock);
    job = STAILQ_FIRST(&worker->waiting);
    if (job)
        STAILQ_REMOVE_HEAD(&worker->waiting, list);
    pthread_mutex_unlock(&worker->lock);
    return job;
}

static void *disk_worker_run(void *userdata) {
    DiskWorker *worker = userdata;
    DiskJob *job;

    while ((job = disk_worker_take(worker))) {
        job->error = job->work.run(job->work.arg);
        pthread_mutex_lock(&worker->lock);
        STAILQ_INSERT_TAIL(&worker->ended, job, list);
        pthread_mutex_unlock(&worker->lock);
        (void)eventfd_write(worker->fd, 1);
    }
    return NULL;
}

static DiskJob *disk_worker_next_ended(DiskWorker *worker) {
    DiskJob *job;

    pthread_mutex_lock(&worker->lock);
    job = STAILQ_FIRST(&worker->ended);
    if (job)
        STAILQ_REMOVE_HEAD(&worker->ended, list);
    pthread_mutex_unlock(&worker->lock);
    return job;
}

static int disk_worker_on_ended(void *userdata) {
    DiskWorker *worker = userdata;
    eventfd_t n;
    DiskJob *job;

    (void)eventfd_read(worker->fd, &n);
    while ((job = disk_worker_next_ended(worker))) {
        if (!job->is_forgotten)
            job->work.done(job->work.userdata, job->error);
        disk_job_free(job);
    }
    return 0;
}

int disk_worker_new(Loop *loop, DiskWorker **ret) {
    static const ThreadOptions options = {.name = "disk", .stack_bytes = DISK_STACK_BYTES};
    _cleanup_(disk_worker_freep) DiskWorker *worker = calloc(1, sizeof(*worker));
    int r;

    if (!worker)
        return -ENOMEM;
    STAILQ_INIT(&worker->waiting);
    STAILQ_INIT(&worker->ended);
    (void)pthread_mutex_init(&worker->lock, NULL);
    (void)pthread_cond_init(&worker->changed, NULL);
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->fd < 0)
        return -errno;
    r = loop_add_readable(loop, worker->fd, disk_worker_on_ended, worker, &worker->source);
    if (r == 0)
        r = thread_start(&options, disk_worker_run, worker, &worker->thread);
    if (r < 0)
        return r;
    worker->is_started = true;
    *ret = TAKE_PTR(worker);
    return 0;
}

DiskWorker *disk_worker_free(DiskWorker *worker) {
    DiskJob *job;

    if (!worker)
        return NULL;
    pthread_mutex_lock(&worker->lock);
    worker->is_over = true;
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    if (worker->is_started)
        (void)pthread_join(worker->thread, NULL);
    while ((job = disk_worker_next_ended(worker)))
        disk_job_free(job);
    (void)loop_source_free(worker->source);
    (void)pthread_cond_destroy(&worker->changed);
    (void)pthread_mutex_destroy(&worker->lock);
    if (worker->fd >= 0)
        (void)close(worker->fd);
    free(worker);
    return NULL;
}

int disk_worker_add(DiskWorker *worker, const DiskWork *work, DiskJob **ret) {
    DiskJob *job = calloc(1, sizeof(*job));

    if (!job)
        return -ENOMEM;
    job->work = *work;
    pthread_mutex_lock(&worker->lock);
    STAILQ_INSERT_TAIL(&worker->waiting, job, list);
    pthread_cond_signal(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    *ret = job;
    return 0;
}

DiskJob *disk_job_forget(DiskJob *job) {
    if (job)
        job->is_forgotten = true;
    return NULL;
}
