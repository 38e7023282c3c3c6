/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads /proc and ELF files on a helper thread, since reading maps can block: processes as
 * Baselines, kernel and module maps, BPF images, cgroups, build ids. Requests are queued; results
 * are delivered on the main thread by the loop. Both queues are bounded.
 */

#include "keeper/request/keeper-client.h"
#include "loop/loop.h"
#include "process/history/history.h"
#include "scan/cache/table-cache.h"
#include "scan/symbols-answer.h"

typedef struct Scanner Scanner;

/* The processes of the user, when only these can be recorded. */
typedef struct ScannerListing {
    uint64_t begin_ns;
    const uint32_t *pids;      /* valid during the call, like the whole struct */
    const uint64_t *starts_ns; /* in CLOCK_BOOTTIME; 0: it is there, but was not read */
    size_t n;
} ScannerListing;

/* This is passed on to history_set_checked(). */
typedef struct ScannerCheck {
    uint64_t image;
    HistoryVerdict verdict;
    uint64_t changed_ns;
} ScannerCheck;

typedef struct ScannerSinks {
    /* The Baseline is valid during the call; copy it with baseline_copy() if it must wait. */
    int (*on_process)(void *userdata, const Baseline *baseline);
    int (*on_kernel)(void *userdata, Bytes records); /* for history_install_kernel() */
    int (*on_cgroup)(void *userdata, uint64_t id, const char *path);
    /* A scanner_cgroups() is complete. */
    int (*on_cgroups_done)(void *userdata, uint64_t begin_ns);
    int (*on_build_id)(void *userdata, uint64_t image, Bytes build_id, uint64_t version);
    /* The answer for a HistoryWanted that checks. */
    int (*on_checked)(void *userdata, const ScannerCheck *check);
    /* Both take over the descriptors that they find in their answer, by setting them to -1. */
    int (*on_symbols)(void *userdata, SymbolsAnswer *answer);
    int (*on_code_map)(void *userdata, CodeMapAnswer *answer);
    /* A scanner_all() is complete; begin_ns is 0 if not everything could be read, so that a missing
     * process may still live. Called twice for one that waits long for some processes: first as
     * for an incomplete one. */
    int (*on_all_done)(void *userdata, uint64_t begin_ns);
    /* Needed only for scanner_list(). */
    int (*on_processes)(void *userdata, const ScannerListing *listing);
    void *userdata;
} ScannerSinks;

int scanner_new(Keeper *keeper, Loop *loop, const ScannerSinks *sinks, Scanner **ret);
/* Stops the thread as soon as its present read returns. Do not call it from a sink. */
Scanner *scanner_free(Scanner *scanner);
DEFINE_CLEANUP(Scanner *, scanner_free);

/* From now on ignores processes of other users, and does not treat hidden kernel addresses as a
 * failure unless the kernel is sampled. Call it before any request. */
void scanner_limit_to_user(Scanner *scanner, bool with_kernel);
/* From now on the namespaces of each process are read too. */
void scanner_see_namespaces(Scanner *scanner);
/* Whether to read the data mappings of executed files too. */
void scanner_see_data(Scanner *scanner, bool see);
/* Lists the processes of this user. */
int scanner_list(Scanner *scanner);
/* Reads every process, then calls on_all_done(). A second call during a pass starts another one
 * after it. */
int scanner_all(Scanner *scanner);
/* Reads one process again; there is no result if it is gone. -ENOBUFS: too many requests wait; also
 * for the functions below. */
int scanner_process(Scanner *scanner, uint32_t pid);
/* Reads where the kernel's code is, everything each time; the result is empty if it cannot be
 * read. */
int scanner_kernel(Scanner *scanner);
int scanner_cgroups(Scanner *scanner);
/* CPU time, as of a moment ago. */
typedef struct ScannerCpu {
    uint64_t scan_ns;   /* of the reading thread */
    uint64_t keeper_ns; /* of the keeper, its openers and profd-elf */
} ScannerCpu;

ScannerCpu scanner_cpu(const Scanner *scanner);
typedef struct ScannerHealth {
    bool is_stuck;  /* the current read has not returned for half a minute */
    bool lacks_elf; /* profd-elf cannot be started, or ends before it answers */
} ScannerHealth;

/* now_ns is CLOCK_MONOTONIC. */
ScannerHealth scanner_health(const Scanner *scanner, uint64_t now_ns);
/* Always delivers a result; it is empty when there is no build id or the file is not certain. */
int scanner_image(Scanner *scanner, const HistoryWanted *wanted);
/* From now on symbols may be asked for; the filter is borrowed until scanner_free(). */
void scanner_keep_symbols(Scanner *scanner, const SymbolsFilter *filter);
/* Finds what names the code of a file. Nothing is delivered if they are not kept. */
int scanner_symbols(Scanner *scanner, const MappedImage *image);
/* Finds the names of generated code: by a pid alone, by the mapping of a jitdump (if it has an
 * end), or in the file of an earlier answer (borrowed; NULL: there was none). */
int scanner_code_map(Scanner *scanner, const MappedImage *image, const CodeMapAnswer *known);
/* The unwind tables, for the main thread. They live as long as the scanner does. */
TableCache *scanner_tables(Scanner *scanner);

/* Delivers results that exist or come within that time; for use after the loop has ended. */
int scanner_await(Scanner *scanner, uint64_t limit_ns);
