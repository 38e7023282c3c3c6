/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process table: names and mappings of threads. It is fed the side-band of a recording in order
 * of time and answers for the time up to which it was fed, as perf does: threads share the mappings
 * of their process, a fork inherits comm and mappings, a new mapping replaces what it overlaps. One
 * thing is stricter than in perf: exec drops all mappings, where perf keeps those of the old
 * program until they are overlapped.
 *
 * A thread that has exited stays known until its id is reused or its memory is needed, since
 * samples may come after the EXIT of their own thread. One limit bounds the memory; what does not
 * fit is counted and then unknown.
 */

#include "process/maps.h"

typedef struct ProcessTable ProcessTable;

/* Zero means the default given here. */
typedef struct ProcessLimits {
    uint64_t memory_bytes; /* of everything, 64 MiB */
    uint32_t exited;       /* threads that are remembered after their exit, 16384 */
    bool forget_exited;    /* remember none, like perf since 6.12; samples after the EXIT of
                            * their own thread then have no name */
} ProcessLimits;

typedef struct ProcessCounts {
    uint64_t threads, exited; /* threads includes the exited ones */
    uint64_t names, images;
    uint64_t memory_bytes;
    uint64_t dropped; /* threads, mappings and names that did not fit into memory */
} ProcessCounts;

int process_table_new(const ProcessLimits *limits, ProcessTable **ret);
ProcessTable *process_table_free(ProcessTable *table);
DEFINE_CLEANUP(ProcessTable *, process_table_free);

/*
 * Feeds a record: COMM, FORK, EXIT, MMAP, MMAP2, KSYMBOL, CGROUP and BUILD_ID, which may name the
 * kernel; others are ignored. `event` as for pd_record_parse(). 0, or -EBADMSG for a record that is
 * shorter than its type requires.
 */
int process_table_feed(ProcessTable *table, const PdRecord *record, const PdEvent *event);
bool process_table_takes(const PdRecord *record);
/* Applies a BUILD_ID record or an entry of that feature. */
void process_table_feed_build_id(ProcessTable *table, uint16_t misc, Bytes filename);

/* Answers are borrowed and valid until the next call on the table; process_table_keep() keeps a
 * name until process_table_forget(). */
typedef struct ProcessAnswer {
    const ProcessName *name; /* what perf prints; NULL: no memory */
    bool known;              /* false: the name is ":TID" or "[unknown]" */
} ProcessAnswer;

ProcessAnswer process_table_comm(ProcessTable *table, uint32_t pid, uint32_t tid);
/* `cpumode` as in misc. Addresses of guests and of a hypervisor are unknown. *ret_mapping (may be
 * NULL) is NULL if the address is unknown. */
ProcessAnswer process_table_dso(ProcessTable *table, uint32_t pid, uint32_t tid, unsigned cpumode,
                                uint64_t ip, const ProcessMapping **ret_mapping);
/* The path of a cgroup by the id that samples carry. */
ProcessAnswer process_table_cgroup(ProcessTable *table, uint64_t id);

void process_table_keep(const ProcessName *name);
void process_table_forget(ProcessTable *table, const ProcessName *name);

/* The address space that addresses of a thread belong to in this cpumode; NULL: unknown. */
const ProcessMaps *process_table_maps(ProcessTable *table, uint32_t pid, uint32_t tid,
                                      unsigned cpumode);
/* The address space of the kernel; NULL: unknown. */
const ProcessMaps *process_table_kernel_maps(const ProcessTable *table);

ProcessCounts process_table_counts(const ProcessTable *table);
