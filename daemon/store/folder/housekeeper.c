/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/housekeeper.h"

#include "util/clock.h"
#include "util/thread.h"

/* All housekeepers have the same limits: how many jobs may wait, and how long the end waits for a
 * disk. */

#define END_NS (5 * NS_PER_SECOND)

enum { JOBS_MAX = 64, UNPRIVILEGED_MAX = 48 };

int housekeeper_new(Loop *loop, const char *name, Worker **ret) {
    return worker_new(
        loop, &(WorkerOptions){.name = name, .nice = THREAD_NICE_USUAL, .end_ns = END_NS}, ret);
}

int housekeeper_add(Worker *housekeeper, const WorkerJob *job, bool privileged) {
    return worker_add(housekeeper, job, privileged ? JOBS_MAX : UNPRIVILEGED_MAX);
}
