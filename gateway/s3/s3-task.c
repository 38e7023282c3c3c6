/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "s3/s3-task.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "util/thread.h"

/* A thread, and an eventfd by which it reports its end to the loop. */

enum { S3_TASK_STACK = 256 * 1024, S3_TASK_END_S = 3 };

struct S3Task {
    S3TaskOptions options;
    atomic_bool stop;
    int ended;
    LoopSource *source;
    pthread_t thread;
};

static S3Task *s3_task_free(S3Task *task) {
    if (!task)
        return NULL;
    loop_source_free(task->source);
    closep(&task->ended);
    free(task);
    return NULL;
}
DEFINE_CLEANUP(S3Task *, s3_task_free);

bool s3_task_cancel(S3Task *task) {
    if (!task)
        return true;
    atomic_store(&task->stop, true);
    if (!thread_end(task->thread, S3_TASK_END_S)) {
        task->source = loop_source_free(task->source);
        return false;
    }
    (void)s3_task_free(task);
    return true;
}

static void *s3_task_run(void *userdata) {
    S3Task *task = userdata;

    task->options.run(task->options.userdata, &task->stop);
    (void)eventfd_write(task->ended, 1);
    return NULL;
}

static int s3_task_on_end(void *userdata) {
    S3Task *task = userdata;
    S3TaskOptions options = task->options;

    (void)s3_task_cancel(task);
    options.done(options.userdata);
    return 0;
}

int s3_task_start(const S3TaskOptions *options, S3Task **ret) {
    _cleanup_(s3_task_freep) S3Task *task = calloc(1, sizeof(*task));
    int r;

    if (!task)
        return -ENOMEM;
    *task = (S3Task){.options = *options, .ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (task->ended < 0)
        return -errno;
    r = loop_add_readable(options->loop, task->ended, s3_task_on_end, task, &task->source);
    if (r == 0)
        r = thread_start(
            &(ThreadOptions){.name = "s3", .nice = THREAD_NICE_LAST, .stack_bytes = S3_TASK_STACK},
            s3_task_run, task, &task->thread);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(task);
    return 0;
}
