/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads what was requested, on a thread of its own, which alone uses the readers: so they need no
 * lock. Other threads use only the queue and the atomic fields. */

#include <stdatomic.h>

#include "scan/cache/table-cache.h"
#include "scan/elf-reader.h"
#include "scan/kernel.h"
#include "scan/process.h"
#include "scan/queue.h"

/* The CPU time of work on files minus its share since. */
typedef struct ScanDebt {
    uint64_t ns, at_ns;
} ScanDebt;

typedef struct ScanReader {
    Keeper *keeper;
    ScanQueue *queue;
    _Atomic(const SymbolsFilter *) filter; /* NULL: symbols are not kept */
    TableCache *tables; /* of the loop's thread; this one only calls table_cache_has() */
    atomic_bool one_user, without_kernel, lacks_elf;
    atomic_uint_fast64_t scan_cpu_ns, keeper_cpu_ns;
    atomic_uint_fast64_t busy_since_ns; /* 0: it waits for work */

    int proc;
    ProcessReader *processes;
    KernelReader *kernel;
    ElfReader *elf;
    uint32_t *pids; /* of the current pass */
    size_t n_pids, next_pid;
    uint64_t pass_begin_ns;
    uint64_t pass_waited_ns; /* process_reader_waited_ns() when it began */
    bool in_pass, pass_is_told, late_is_planned;
    ScanDebt build_id_debt, table_debt, check_debt;
    ScanDebt kept_debt; /* of symbols and code maps */
    uint64_t cpu_noted_ns, keeper_before_ns;
    bool is_partial; /* some processes could not be read or seen */
    bool has_warned;
} ScanReader;

/* Also to be passed to scan_reader_done() after a failure. */
int scan_reader_init(ScanReader *reader, Keeper *keeper);
void scan_reader_done(ScanReader *reader);
/* The function of the thread. It returns when the queue is stopped. */
void *scan_reader_run(void *reader);
