/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A set of CPUs, as the kernel and administrators write it: "0-3,8". Sorted, each once.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/macro.h"

enum {
    CPU_LIST_MAX = 8192, /* CPUs are numbered below it */
    CPU_LIST_TEXT_MAX = 4096
};

typedef struct CpuList {
    unsigned *cpus;
    size_t n;
} CpuList;

void cpu_list_done(CpuList *list);
/* "" is the empty list. -EINVAL for what is no list, -ERANGE for numbers that no CPU has. */
int cpu_list_parse(const char *text, CpuList *ret);
/* From a file of sysfs; one that lists none is -EBADMSG. */
int cpu_list_read(const char *path, CpuList *ret);
int cpu_list_copy(const CpuList *list, CpuList *ret);
bool cpu_list_has(const CpuList *list, unsigned cpu);
bool cpu_list_equal(const CpuList *a, const CpuList *b);
