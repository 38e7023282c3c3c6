/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A thread for what would hold up the loop: it does one job after the other, and hands each back on
 * the thread of the loop. */

#include "loop/loop.h"

typedef struct Worker Worker;

typedef struct WorkerOptions {
    const char *name;    /* of the thread, up to 15 bytes */
    int nice;            /* see ThreadOptions */
    size_t stack_bytes;  /* 0: the default */
    uint64_t end_ns;     /* how long the end may wait for a job; 0: until it is done */
    bool finishes;       /* the end does the jobs that wait, instead of skipping them */
    bool starts_on_work; /* the thread starts with the first job, instead of at once */
} WorkerOptions;

typedef struct WorkerJob {
    void (*run)(void *userdata);  /* on the worker; not called for a job that the end skips */
    void (*done)(void *userdata); /* on the thread of the loop; always called, and last */
    void *userdata;
} WorkerJob;

int worker_new(Loop *loop, const WorkerOptions *options, Worker **ret);
/* Hands all jobs back. False: a job takes longer than `end_ns`. It is not handed back, and
 * everything that it uses must stay allocated. */
bool worker_end(Worker *worker);
Worker *worker_free(Worker *worker);
DEFINE_CLEANUP(Worker *, worker_free);

/* -EBUSY: so many jobs were not handed back yet. Then, and at every other error, neither function
 * of the job is called. */
int worker_add(Worker *worker, const WorkerJob *job, size_t jobs_max);
