/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One process as /proc shows it. */

#include <sys/types.h>

#include "keeper/request/keeper-client.h"
#include "process/history/history.h"

enum {
    PROCESS_THREADS_MAX = 1 << 20, /* of one process; the rest is left out */
    PROCESSES_MAX = 1 << 22,       /* PID_MAX_LIMIT of the kernel */
};

typedef struct ProcessReader ProcessReader;

/* A descriptor of /proc, and the keeper, both borrowed. */
int process_reader_new(int proc, Keeper *keeper, ProcessReader **ret);
ProcessReader *process_reader_free(ProcessReader *reader);
DEFINE_CLEANUP(ProcessReader *, process_reader_free);

/* From now on where they live is read too. Any thread may say so. */
void process_reader_see_namespaces(ProcessReader *reader);
/* Whether to read the data mappings of files that are executed as well. Any thread may say so. */
void process_reader_see_data(ProcessReader *reader, bool see);
/* The Baseline is good until the next call. -ESRCH: there is no such process, or it has ended;
 * -EAGAIN: its pid passed from one to another again and again while it was read. A process whose
 * maps we may not read has none. */
int process_reader_read(ProcessReader *reader, uint32_t pid, Baseline *ret);
/* The maps of a process whose leader may have ended before its threads. */
int process_reader_open_maps(ProcessReader *reader, uint32_t pid, int *ret_fd);
/* When it began, by CLOCK_BOOTTIME. */
int process_reader_start(ProcessReader *reader, uint32_t pid, uint64_t *ret_ns);
/* Leaves those of one user, of which he may know more than that they are there. */
void process_list_of(int proc, uid_t uid, uint32_t *pids, size_t *n);
/* The pids that are there now; free() them. */
int process_list(int proc, uint32_t **ret_pids, size_t *ret_n);
/* Whether it shows the processes of others, of which init is always one. */
bool process_shows_all(int proc);
