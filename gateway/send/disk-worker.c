/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/disk-worker.h"

#include <errno.h>
#include <string.h>

#include "loop/worker.h"
#include "send/state-file.h"
#include "util/clock.h"

/*
 * Each destination has a worker of its own, so that a folder on a file system that hangs, or a disk
 * that takes a second to sync, holds up this destination and neither another one nor the loop. When
 * a destination ends, work that hangs is left behind with its thread. So it owns all that it uses.
 */

enum { DISK_STACK_BYTES = 256 * 1024 };

#define DISK_END_NS (3 * NS_PER_SECOND)

struct DiskJob {
    const DiskWorker *worker;
    DiskWork work;
    int error;
    bool is_forgotten;
};

struct DiskWorker {
    Worker *worker;
    bool is_over;
};

static void disk_job_run(void *userdata) {
    DiskJob *job = userdata;

    job->error = job->work.run(job->work.arg);
}

static void disk_job_done(void *userdata) {
    DiskJob *job = userdata;

    if (!job->is_forgotten && !job->worker->is_over)
        job->work.done(job->work.userdata, job->error);
    job->work.free_arg(job->work.arg);
    free(job);
}

int disk_worker_new(Loop *loop, DiskWorker **ret) {
    static const WorkerOptions options = {
        .name = "disk", .stack_bytes = DISK_STACK_BYTES, .end_ns = DISK_END_NS, .finishes = true};
    _cleanup_(disk_worker_freep) DiskWorker *worker = calloc(1, sizeof(*worker));
    int r = worker ? worker_new(loop, &options, &worker->worker) : -ENOMEM;

    if (r < 0)
        return r;
    *ret = TAKE_PTR(worker);
    return 0;
}

bool disk_worker_end(DiskWorker *worker) {
    bool has_ended;

    if (!worker)
        return true;
    worker->is_over = true;
    has_ended = worker_end(worker->worker);
    free(worker);
    return has_ended;
}

DiskWorker *disk_worker_free(DiskWorker *worker) {
    (void)disk_worker_end(worker);
    return NULL;
}

int disk_worker_add(DiskWorker *worker, const DiskWork *work, DiskJob **ret) {
    DiskJob *job = calloc(1, sizeof(*job));
    int r;

    if (!job)
        return -ENOMEM;
    *job = (DiskJob){.worker = worker, .work = *work};
    r = worker_add(worker->worker,
                   &(WorkerJob){.run = disk_job_run, .done = disk_job_done, .userdata = job},
                   SIZE_MAX);
    if (r < 0)
        free(job);
    else
        *ret = job;
    return r;
}

/* A DiskSave with strings of its own. */
typedef struct DiskCopy {
    char *folder, *name;
    const char *suffix;
    Buffer text;
} DiskCopy;

static int disk_worker_run_save(void *arg) {
    const DiskCopy *copy = arg;

    return state_file_save(copy->folder, copy->name, copy->suffix, &copy->text);
}

static void disk_worker_free_save(void *arg) {
    DiskCopy *copy = arg;

    buffer_done(&copy->text);
    free(copy->folder);
    free(copy->name);
    free(copy);
}

/* Takes the text. */
static DiskCopy *disk_worker_copy(DiskSave *save) {
    DiskCopy *copy = malloc(sizeof(*copy));

    if (!copy) {
        buffer_done(&save->text);
        return NULL;
    }
    *copy = (DiskCopy){.folder = strdup(save->folder),
                       .name = strdup(save->name),
                       .suffix = save->suffix,
                       .text = save->text};
    save->text = (Buffer){};
    if (copy->folder && copy->name)
        return copy;
    disk_worker_free_save(copy);
    return NULL;
}

int disk_worker_save(DiskWorker *worker, DiskSave *save, void (*done)(void *userdata, int error),
                     void *userdata, DiskJob **ret) {
    DiskCopy *copy = disk_worker_copy(save);
    DiskWork work = {.run = disk_worker_run_save,
                     .done = done,
                     .free_arg = disk_worker_free_save,
                     .arg = copy,
                     .userdata = userdata};
    int r;

    if (!copy)
        return -ENOMEM;
    r = disk_worker_add(worker, &work, ret);
    if (r < 0)
        disk_worker_free_save(copy);
    return r;
}

DiskJob *disk_job_forget(DiskJob *job) {
    if (job)
        job->is_forgotten = true;
    return NULL;
}
