/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A worker that does disk work which belongs to no session for the main thread: pinning and
 * removing snapshots, reading manifests, opening files.
 */

#include "loop/worker.h"

/* `name`: the name of the thread, up to 15 bytes. Its end skips the jobs that wait, and waits some
 * seconds for a disk that does not answer, see worker_end(). */
int housekeeper_new(Loop *loop, const char *name, Worker **ret);
/* -EBUSY: too many wait. Some places are reserved for `privileged` jobs. */
int housekeeper_add(Worker *housekeeper, const WorkerJob *job, bool privileged);
/* Closes a file on the thread: it may be the last descriptor of a deleted one, whose blocks go with
 * it. Closes it here if there is no housekeeper or too many jobs wait. Sets *fd to -1. */
void housekeeper_close(Worker *housekeeper, int *fd);
