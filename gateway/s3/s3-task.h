/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Work that waits for profd or the disk, on a thread that exists as long as it. */

#include <stdatomic.h>

#include "loop/loop.h"

typedef struct S3Task S3Task;

typedef struct S3TaskOptions {
    Loop *loop;
    /* On the thread; a wait should end within a second once *stop is set. */
    void (*run)(void *userdata, const atomic_bool *stop);
    /* On the thread of the loop; the task is freed before. */
    void (*done)(void *userdata);
    void *userdata;
} S3TaskOptions;

int s3_task_start(const S3TaskOptions *options, S3Task **ret);
/* Waits for the thread, for a few seconds; `done` is not called any more. Accepts NULL. False: the
 * thread hangs, and everything that it uses must stay allocated. */
bool s3_task_cancel(S3Task *task);
