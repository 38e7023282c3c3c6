/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the state of one process from /proc. */

#include <sys/types.h>

#include "keeper/request/keeper-client.h"
#include "process/history/history.h"

enum {
    PROCESS_THREADS_MAX = 1 << 20, /* of one process; others are left out */
    PROCESSES_MAX = 1 << 22,       /* the kernel's PID_MAX_LIMIT */
};

typedef struct ProcessReader ProcessReader;

/* A descriptor of /proc, and the keeper, both borrowed. */
int process_reader_new(int proc, Keeper *keeper, ProcessReader **ret);
ProcessReader *process_reader_free(ProcessReader *reader);
DEFINE_CLEANUP(ProcessReader *, process_reader_free);

/* From now on namespaces are read too. May be called from any thread. */
void process_reader_see_namespaces(ProcessReader *reader);
/* Whether to read the data mappings of executed files too. May be called from any thread. */
void process_reader_see_data(ProcessReader *reader, bool see);
/* The Baseline is valid until the next call. -ESRCH: there is no such process, or it has ended;
 * -EAGAIN: its pid was reused repeatedly while it was read; -ETIMEDOUT: it is late. If we may not
 * read the maps of a process, the Baseline has none. */
int process_reader_read(ProcessReader *reader, uint32_t pid, Baseline *ret);
/* Reads maps of a process whose leader may have ended before its threads; close the descriptor. */
int process_reader_read_maps(ProcessReader *reader, uint32_t pid, KeeperMaps maps, uint64_t address,
                             int *ret_fd);
/* A process is late if it could not be read in time, or if its user has so many of those that they
 * are not waited for. */
bool process_reader_has_late(const ProcessReader *reader);
/* How long was waited in all for processes that were late then. */
uint64_t process_reader_waited_ns(const ProcessReader *reader);
bool process_reader_is_late(const ProcessReader *reader, uint32_t pid);
/* Waits once more for the process that is late for longest; -ETIMEDOUT: it still is. */
int process_reader_read_late(ProcessReader *reader, uint32_t *ret_pid, Baseline *ret);
/* When the process began, in CLOCK_BOOTTIME. */
int process_reader_start(ProcessReader *reader, uint32_t pid, uint64_t *ret_ns);
/* Keeps only the processes of one user whose details he may read. */
void process_list_of(int proc, uid_t uid, uint32_t *pids, size_t *n);
/* The pids of all processes; free() them. */
int process_list(int proc, uint32_t **ret_pids, size_t *ret_n);
/* Whether /proc shows the processes of other users; init is always one. */
bool process_shows_all(int proc);
