/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Has the keeper read those files of a process that the process can keep from being read. */

#include "keeper/request/keeper-client.h"
#include "scan/late.h"
#include "scan/text/stat.h"

typedef struct ProcessTexts {
    int proc;
    Keeper *keeper;
    LateProcesses late;
    bool waits_again; /* also for a process that is late */
} ProcessTexts;

typedef struct ProcessText {
    ProcessStat stat;
    int maps_error; /* a negative errno, or 0 */
    int fd;         /* its maps, to be read on; -1: none were asked for */
} ProcessText;

/*
 * Reads the stat file, and what it maps through one of its threads; close the fd. All of it is of
 * one process. -ESRCH: it is gone; -EACCES: it is hidden from the keeper; -ETIMEDOUT: it is late,
 * now or since it was asked last; -EAGAIN: the pid was reused meanwhile, or the helper was killed.
 */
int process_text_read(ProcessTexts *texts, uint32_t pid, uint32_t tid, KeeperMaps maps,
                      uint64_t address, ProcessText *ret);
/* The pid of the process in its own namespace, as it calls itself. */
int process_inner_pid(int proc, uint32_t pid, uint32_t *ret);
/* The stat of one of its threads alone. */
int process_text_stat(ProcessTexts *texts, uint32_t pid, uint32_t tid, ProcessStat *ret);
