/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process table: who was called what and had what mapped where. It is fed the side-band of a
 * recording in order of time and answers for the moment up to which it was fed, as perf does:
 * threads share the mappings of their process, a fork inherits comm and mappings, a new mapping
 * takes the place of what it covers. In one thing it is stricter than perf: exec drops all
 * mappings, where perf keeps the old program's until they are covered.
 *
 * What exited stays known until its id is used again or room is needed, since samples may come
 * after the EXIT of their own thread. Memory is bounded by one limit; what found no room is
 * counted and then unknown.
 */

#include "process/maps.h"

typedef struct ProcessTable ProcessTable;

/* Zero: the default, given here. */
typedef struct ProcessLimits {
    uint64_t memory_bytes; /* of everything, 64 MiB */
    uint32_t exited;       /* threads that are remembered after their end, 16384 */
    bool forget_exited;    /* none of them: perf's way since 6.12, by which samples that come after
                            * the EXIT of their own thread have lost its name */
} ProcessLimits;

typedef struct ProcessCounts {
    uint64_t threads, exited; /* exited ones are among the threads */
    uint64_t names, images;
    uint64_t memory_bytes;
    uint64_t dropped; /* threads, mappings and names for which there was no room */
} ProcessCounts;

int process_table_new(const ProcessLimits *limits, ProcessTable **ret);
ProcessTable *process_table_free(ProcessTable *table);
DEFINE_CLEANUP(ProcessTable *, process_table_free);

/*
 * Takes in a record: COMM, FORK, EXIT, MMAP, MMAP2, KSYMBOL, CGROUP and BUILD_ID, which may name
 * the kernel; others pass by. `event` as for pd_record_parse(). 0, or -EBADMSG for a record that
 * does not hold what its type announces.
 */
int process_table_feed(ProcessTable *table, const PdRecord *record, const PdEvent *event);
bool process_table_takes(const PdRecord *record);
/* What a BUILD_ID record, or an entry of that feature, says. */
void process_table_feed_build_id(ProcessTable *table, uint16_t misc, Bytes filename);

/* Answers are borrowed and good until the table's next call; process_table_keep() makes a name stay
 * until process_table_forget(). */
typedef struct ProcessAnswer {
    const ProcessName *name; /* what perf prints; NULL only for want of memory */
    bool known;              /* false: ":TID" or "[unknown]" */
} ProcessAnswer;

ProcessAnswer process_table_comm(ProcessTable *table, uint32_t pid, uint32_t tid);
/* `cpumode` as in misc. Guests' and a hypervisor's addresses are unknown. *ret_mapping (may be
 * NULL) is NULL where nothing is known. */
ProcessAnswer process_table_dso(ProcessTable *table, uint32_t pid, uint32_t tid, unsigned cpumode,
                                uint64_t ip, const ProcessMapping **ret_mapping);
/* The path of a cgroup by the id that samples carry. */
ProcessAnswer process_table_cgroup(ProcessTable *table, uint64_t id);

void process_table_keep(const ProcessName *name);
void process_table_forget(ProcessTable *table, const ProcessName *name);

/* The address space of the kernel; NULL when it is not known. */
const ProcessMaps *process_table_kernel_maps(const ProcessTable *table);

ProcessCounts process_table_counts(const ProcessTable *table);
