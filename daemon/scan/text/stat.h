/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parses the needed part of /proc/PID/stat. */

#include <sys/types.h>

#include "util/bytes.h"

typedef struct ProcessStat {
    char comm[16]; /* as in the kernel's COMM record */
    char state;
    uint32_t ppid;
    uint32_t flags; /* the kernel's PF_… flags */
    uint64_t n_threads;
    uint64_t start_ticks; /* together with the pid identifies a process */
} ProcessStat;

int process_stat_parse(Bytes text, ProcessStat *ret);
/* The last number of "NSpid:" in /proc/PID/status: the pid in the innermost namespace. -EBADMSG:
 * there is none. */
int process_status_inner_pid(const char *text, uint32_t *ret);
/* The first number of "Uid:" in it: the user who runs the process. -EBADMSG: there is none. */
int process_status_user(const char *text, uid_t *ret);
/* Copies a comm from /proc without what the kernel adds to it there. */
void process_comm_copy(char ret[16], Bytes text);
/* Parses 1 to INT_MAX in plain digits. */
bool process_id_parse(const char *name, uint32_t *ret);
