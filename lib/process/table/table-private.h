/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What process-table.c (threads and answers) and feed.c (records) share. */

#include "process/table/table.h"

/* The mappings that all threads of a process share. */
typedef struct Space {
    uint32_t refs;
    ProcessMaps *maps;
} Space;

typedef struct Thread Thread;

struct Thread {
    Thread *next;          /* in its bucket; first, see hash-table.h */
    Thread *older, *newer; /* in the list of exited threads */
    uint32_t pid, tid;
    bool exited;
    ProcessName *comm; /* NULL: unknown */
    Space *space;
};

typedef struct Cgroup Cgroup;

struct Cgroup {
    Cgroup *next; /* in its bucket; first, see hash-table.h */
    uint64_t id;
    ProcessName *path;
};

struct ProcessTable {
    ProcessStrings strings;
    HashTable threads; /* by tid */
    size_t n_exited;
    Thread *recent;                        /* the thread of the last lookup */
    Thread *oldest_exited, *newest_exited; /* in order of their exits */
    uint32_t exited_max;
    bool forget_exited;
    uint64_t dropped;
    ProcessMaps *kernel;
    ProcessName *kernel_name; /* NULL: "[kernel.kallsyms]" */
    ProcessName *unknown;     /* "[unknown]" */
    ProcessName *scratch;     /* a reference for an answer that nothing else holds */
    HashTable cgroups;        /* by id */
};

Thread *thread_find(ProcessTable *table, uint32_t tid);
/* Finds threads like perf: by tid, whatever process it was last seen in. NULL: no memory, which is
 * counted. */
Thread *thread_get(ProcessTable *table, uint32_t pid, uint32_t tid);
void thread_remove(ProcessTable *table, Thread *thread);
void thread_exited(ProcessTable *table, Thread *thread);
/* Gives the thread an empty address space of its own. */
void thread_exec(ProcessTable *table, Thread *thread);
/* Takes over the reference. */
void thread_set_comm(ProcessTable *table, Thread *thread, ProcessName *comm);

Cgroup *cgroup_find(const ProcessTable *table, uint64_t id);
