/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A thread for what would hold up the loop: it does one work after the other, and hands each back
 * on the thread of the loop. */

#include <sys/queue.h>

#include "loop/loop.h"

typedef struct ListenWorker ListenWorker;

/* Embedded in what the work is about. */
typedef struct ListenWork {
    TAILQ_ENTRY(ListenWork) list;
    void (*run)(struct ListenWork *work);  /* on the worker */
    void (*done)(struct ListenWork *work); /* on the loop, once; also when the worker is freed */
} ListenWork;

/* `name`: up to 15 bytes. Its thread starts with the first work. */
int listen_worker_new(Loop *loop, const char *name, size_t works_max, ListenWorker **ret);
/* Waits until the work that runs is over. */
ListenWorker *listen_worker_free(ListenWorker *worker);
DEFINE_CLEANUP(ListenWorker *, listen_worker_free);

/* -EBUSY: so many works are waiting already. Then, and at every other error, `done` is not called.
 */
int listen_worker_submit(ListenWorker *worker, ListenWork *work);
