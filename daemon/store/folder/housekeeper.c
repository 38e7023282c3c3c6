/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/folder/housekeeper.h"

#include <stdlib.h>

#include "util/clock.h"
#include "util/macro.h"
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

static void housekeeper_close_file(void *userdata) {
    closep(userdata);
}

/* At the end, jobs that wait are not run. */
static void housekeeper_on_closed(void *userdata) {
    closep(userdata);
    free(userdata);
}

void housekeeper_close(Worker *housekeeper, int *fd) {
    int *taken = housekeeper && *fd >= 0 ? malloc(sizeof(*taken)) : NULL;

    if (taken) {
        *taken = *fd;
        if (housekeeper_add(housekeeper,
                            &(WorkerJob){housekeeper_close_file, housekeeper_on_closed, taken},
                            true) == 0)
            *fd = -1;
        else
            free(taken);
    }
    closep(fd);
}
