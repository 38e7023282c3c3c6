/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A thread that does what may wait for a disk, in the order in which it is asked. */

#include "loop/loop.h"
#include "util/buffer.h"

typedef struct DiskWorker DiskWorker;
typedef struct DiskJob DiskJob;

typedef struct DiskWork {
    int (*run)(void *arg); /* on the thread, with `arg` alone; 0 or a negative errno */
    void (*done)(void *userdata, int error); /* on the loop's thread */
    void (*free_arg)(void *arg);             /* on the loop's thread, after `done` */
    void *arg, *userdata;
} DiskWork;

/* A state for state_file_save(). */
typedef struct DiskSave {
    const char *folder, *name;
    const char *suffix; /* static */
    Buffer text;
} DiskSave;

int disk_worker_new(Loop *loop, DiskWorker **ret);
/* Waits until all work is done, for a few seconds; `done` is not called any more. False: the disk
 * hangs. The work under way may still be done, and what waited behind it is not. */
bool disk_worker_end(DiskWorker *worker);
DiskWorker *disk_worker_free(DiskWorker *worker);
DEFINE_CLEANUP(DiskWorker *, disk_worker_free);

/* After success the worker owns `arg`. */
int disk_worker_add(DiskWorker *worker, const DiskWork *work, DiskJob **ret);
/* Takes the text, also when it fails. */
int disk_worker_save(DiskWorker *worker, DiskSave *save, void (*done)(void *userdata, int error),
                     void *userdata, DiskJob **ret);
/* The work is done all the same, and nobody hears of it. Accepts NULL. */
DiskJob *disk_job_forget(DiskJob *job);
