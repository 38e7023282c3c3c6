/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeps the state of all processes: side-band goes into the History, the Scanner reads what is only
 * in /proc and ELF files, and this file combines both. All of /proc is read once at start, and
 * again when the kernel dropped side-band; a rotation reads nothing.
 */

#include "keeper/request/keeper-client.h"
#include "loop/loop.h"
#include "process/history/history.h"
#include "scan/scanner.h"

typedef struct Tracker Tracker;

typedef struct TrackerOptions {
    Keeper *keeper;
    Loop *loop;
    LoopCallback on_ready; /* the first pass over /proc is in the history */
    LoopCallback on_due;   /* baselines wait until side-band is drained */
    /* No file is looked up or checked any more, and no sweep was scheduled; NULL: not needed. */
    LoopCallback on_answered;
    bool one_user; /* only processes of this user, not before tracker_pass() */
    bool sees_kernel;
    bool sees_data;       /* like tracker_see_data(), from the first pass on */
    uint64_t table_bytes; /* of the history; 0: its default */
    int (*on_processes)(void *userdata, const ScannerListing *listing); /* with one_user */
    int (*on_known)(void *userdata, uint32_t pid);                      /* NULL: not needed */
    /* What names code, see ScannerSinks; NULL: not needed. */
    int (*on_symbols)(void *userdata, SymbolsAnswer *answer);
    int (*on_code_map)(void *userdata, CodeMapAnswer *answer);
    /* Results of a walk over the control groups; NULL: not needed. */
    int (*on_group)(void *userdata, const char *path);
    int (*on_groups_done)(void *userdata, uint64_t begin_ns);
    void *userdata;
} TrackerOptions;

/* Call it when side-band is running; begins to read the kernel's maps, then /proc. */
int tracker_new(const TrackerOptions *options, Tracker **ret);
Tracker *tracker_free(Tracker *tracker);
DEFINE_CLEANUP(Tracker *, tracker_free);

History *tracker_history(Tracker *tracker);
/* The unwind tables. They live as long as the tracker does. */
TableCache *tracker_tables(Tracker *tracker);
/* These ask the scanner, see scanner.h: a NULL filter ends it. */
void tracker_keep_symbols(Tracker *tracker, const SymbolsFilter *filter);
int tracker_symbols(Tracker *tracker, const MappedImage *image);
int tracker_code_map(Tracker *tracker, const MappedImage *image, const CodeMapAnswer *known);
/* Whether the kernel maps are known, so that recordings may begin. */
bool tracker_knows_kernel(const Tracker *tracker);
bool tracker_is_ready(const Tracker *tracker);

/* No sample is older than floor_ns; records fed before this call describe the state at that
 * time. */
int tracker_begin(Tracker *tracker, uint64_t floor_ns);
int tracker_feed(Tracker *tracker, const PdEvent *side_band, Bytes records);
/* All side-band of the sweep that began at start_ns has been fed. */
int tracker_settle(Tracker *tracker, uint64_t start_ns);
/* The sweep is complete. */
int tracker_complete(Tracker *tracker, uint64_t start_ns);
/* Waits for build ids that recordings wait for; for use after the loop has ended. */
int tracker_await(Tracker *tracker, uint64_t limit_ns);
/* Lists the processes, then calls on_processes(). */
int tracker_list(Tracker *tracker);
/* Reads one process again, then calls on_known(). */
int tracker_read(Tracker *tracker, uint32_t pid);
/* Walks over the control groups and calls on_group() and on_groups_done(). */
void tracker_walk_groups(Tracker *tracker);
/* Reads all processes for the first time. */
int tracker_pass(Tracker *tracker);
/* Call it when a session needs namespaces: reads those of running processes, the first time
 * only. */
int tracker_see_namespaces(Tracker *tracker);
/* Whether a session samples stacks, which perf unwinds with data mappings; reads those of running
 * processes when the first such session begins. */
int tracker_see_data(Tracker *tracker, bool see);
/* Reads /proc again after side-band was lost. */
int tracker_resync(Tracker *tracker);
/* The same, but while losses go on only now and then: any program can make its side-band overflow
 * all the time, and a pass over all processes delays other reading. The last loss is always
 * followed by one. */
int tracker_resync_after_loss(Tracker *tracker);
/* How often /proc was read again. */
uint64_t tracker_resyncs(const Tracker *tracker);
/* Whether the scanner works as it should. */
ScannerHealth tracker_health(const Tracker *tracker);
/* The CPU time of the scanner, the keeper and profd-elf. */
ScannerCpu tracker_cpu(const Tracker *tracker);
/* Notes a kernel sample at this address; reads the modules again if no known code is there. */
void tracker_see_kernel(Tracker *tracker, uint64_t address, uint64_t time_ns);
