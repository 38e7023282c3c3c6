/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/open/thread-list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/array.h"
#include "util/log.h"
#include "util/parse.h"

/* The threads of the processes that a session names, as /proc lists them. */

enum { TIDS_MAX = 4096 };

int thread_list_tasks(uint32_t pid, size_t max, uint32_t **tids, size_t *n) {
    _cleanup_closedir_ DIR *tasks = NULL;
    char path[64];
    uint64_t tid;

    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
    tasks = opendir(path);
    if (!tasks)
        return errno == ENOENT ? -ESRCH : -errno;
    for (struct dirent *e; (e = readdir(tasks));) {
        uint32_t *to;

        if (parse_u64(e->d_name, &tid) < 0 || tid == 0 || tid > INT32_MAX)
            continue;
        if (*n >= max)
            return -E2BIG;
        to = array_grow(tids, n);
        if (!to)
            return -ENOMEM;
        *to = (uint32_t)tid;
    }
    return 0;
}

static int thread_list_add_process(SamplerSession *session, uint32_t pid) {
    int r = thread_list_tasks(pid, TIDS_MAX, &session->tids, &session->n_tids);

    if (r == -E2BIG)
        return log_warning(r,
                           "Session '%s' has more than %d threads to sample, leaving out the "
                           "rest; a cgroup as the target has no such limit",
                           session->config.name, TIDS_MAX);
    if (r < 0 && r != -ENOMEM)
        return log_warning(r,
                           "Failed to list the threads of process %" PRIu32
                           " for session '%s', leaving it out; is it running, and /proc mounted "
                           "without hidepid?: %m",
                           pid, session->config.name);
    return r;
}

static int thread_list_add(SamplerSession *session, uint32_t tid) {
    uint32_t *to;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%" PRIu32, tid);
    if (access(path, F_OK) < 0)
        return log_warning(0, "Thread %" PRIu32 " of session '%s' does not run, leaving it out",
                           tid, session->config.name);
    to = array_grow(&session->tids, &session->n_tids);
    if (!to)
        return -ENOMEM;
    *to = tid;
    return 0;
}

int thread_list_read(SamplerSession *session) {
    int r = 0;

    session->n_tids = 0;
    for (uint32_t i = 0; i < session->config.n_pids; i++) {
        int k = thread_list_add_process(session, session->config.pids[i]);

        r = r < 0 ? r : k;
    }
    for (uint32_t i = 0; r == 0 && i < session->config.n_tids; i++)
        r = thread_list_add(session, session->config.tids[i]);
    return session->n_tids > 0 || !plan_has_threads(&session->config) ? 0 : r < 0 ? r : -ESRCH;
}
