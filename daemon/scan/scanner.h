/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What /proc and ELF files tell, read on a helper thread, since maps can block: processes as
 * Baselines, kernel and module maps, BPF images, cgroups, build ids. Requests are queued, results
 * come back on the main thread through the loop. Bounded both ways.
 */

#include "keeper/request/keeper-client.h"
#include "loop/loop.h"
#include "process/history/history.h"
#include "scan/cache/table-cache.h"

typedef struct Scanner Scanner;

/* Who runs of the user whose processes are all there is to see. */
typedef struct ScannerListing {
    uint64_t begin_ns;
    const uint32_t *pids;      /* valid during the call, as all of it */
    const uint64_t *starts_ns; /* by CLOCK_BOOTTIME */
    size_t n;
} ScannerListing;

typedef struct ScannerSinks {
    /* The Baseline is valid during the call; copy by baseline_copy() of baseline.h if it must wait.
     */
    int (*on_process)(void *userdata, const Baseline *baseline);
    int (*on_kernel)(void *userdata, Bytes records); /* for history_install_kernel() */
    int (*on_cgroup)(void *userdata, uint64_t id, const char *path);
    /* A scanner_cgroups() is through. */
    int (*on_cgroups_done)(void *userdata, uint64_t begin_ns);
    int (*on_build_id)(void *userdata, uint64_t image, Bytes build_id);
    /* A scanner_all() is through; 0 when not all could be read, and who was not found may live. */
    int (*on_all_done)(void *userdata, uint64_t begin_ns);
    /* Only where there is a scanner_list(). */
    int (*on_processes)(void *userdata, const ScannerListing *listing);
    void *userdata;
} ScannerSinks;

int scanner_new(Keeper *keeper, Loop *loop, const ScannerSinks *sinks, Scanner **ret);
/* Stops the thread as soon as what it reads returns. Not to be called out of a sink. */
Scanner *scanner_free(Scanner *scanner);
DEFINE_CLEANUP(Scanner *, scanner_free);

/* From now on the processes of other users are none, and whether the kernel hides from us where its
 * code is does not matter unless it is sampled. Before anything else is asked for. */
void scanner_see_own(Scanner *scanner, bool with_kernel);
/* From now on of each process that is read its namespaces too. */
void scanner_see_namespaces(Scanner *scanner);
/* Whether to read the data mappings of files that are executed as well. */
void scanner_see_data(Scanner *scanner, bool see);
/* Which processes of this user are there. */
int scanner_list(Scanner *scanner);
/* Every process, then on_all_done(). A second call while one goes on begins anew after it. */
int scanner_all(Scanner *scanner);
/* One, again; nothing comes when it is gone. -ENOBUFS: too many are wanted already; so below. */
int scanner_process(Scanner *scanner, uint32_t pid);
/* Where the kernel's code is, all of it each time, and nothing where that could not be read. */
int scanner_kernel(Scanner *scanner);
int scanner_cgroups(Scanner *scanner);
/* What was used of the CPU until a moment ago. */
typedef struct ScannerCpu {
    uint64_t scan_ns;   /* by the thread that reads */
    uint64_t keeper_ns; /* by the keeper, its openers and profd-elf */
} ScannerCpu;

ScannerCpu scanner_cpu(const Scanner *scanner);
typedef struct ScannerHealth {
    bool is_stuck;  /* what the thread reads has not answered for half a minute */
    bool lacks_elf; /* profd-elf cannot be started, or ends before it answers */
} ScannerHealth;

/* At that moment of the monotonic clock. */
ScannerHealth scanner_health(const Scanner *scanner, uint64_t now_ns);
/* Always answered; empty when there is no build id or it is not for certain. */
int scanner_image(Scanner *scanner, const HistoryWanted *wanted);
/* The unwind tables of what is asked for there; on the main thread, as long as the scanner is. */
TableCache *scanner_tables(Scanner *scanner);

/* Delivers what there is, or comes within that time; for those who left the loop. */
int scanner_await(Scanner *scanner, uint64_t limit_ns);
