/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The text of /proc/PID/stat, as far as it is needed. */

#include "util/bytes.h"

typedef struct ProcessStat {
    char comm[16]; /* as the kernel's COMM would have it */
    char state;
    uint32_t ppid;
    uint32_t flags; /* PF_… of the kernel */
    uint64_t n_threads;
    uint64_t start_ticks; /* with the pid, one process and no other */
} ProcessStat;

int process_stat_parse(Bytes text, ProcessStat *ret);
/* Copies a comm out of /proc, less what the kernel adds to it there. */
void process_comm_copy(char ret[16], Bytes text);
/* 1 to INT_MAX in plain digits. */
bool process_id_parse(const char *name, uint32_t *ret);
