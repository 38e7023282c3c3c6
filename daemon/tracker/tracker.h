/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Who runs what, kept right: side-band goes into the History, what only /proc and ELF files know
 * comes from the Scanner, and both meet here. At start, and when the kernel had no room for
 * side-band, all of /proc is read once; a rotation reads nothing.
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
    LoopCallback on_due;   /* baselines wait for side-band to be drained */
    bool sees_own;         /* only processes of this user, and these not before tracker_pass() */
    bool sees_kernel;
    bool sees_data;       /* as tracker_see_data(), from the first pass on */
    uint64_t table_bytes; /* of the history; 0: its default */
    int (*on_processes)(void *userdata, const ScannerListing *listing); /* with sees_own */
    int (*on_known)(void *userdata, uint32_t pid); /* NULL: nobody wants to know */
    /* Of a walk through the control groups; NULL: nobody wants to know. */
    int (*on_group)(void *userdata, const char *path);
    int (*on_groups_done)(void *userdata, uint64_t begin_ns);
    void *userdata;
} TrackerOptions;

/* To be called when side-band is running; begins to read what the kernel has mapped, then /proc. */
int tracker_new(const TrackerOptions *options, Tracker **ret);
Tracker *tracker_free(Tracker *tracker);
DEFINE_CLEANUP(Tracker *, tracker_free);

History *tracker_history(Tracker *tracker);
/* Kernel maps are known: recordings may begin. */
bool tracker_knows_kernel(const Tracker *tracker);
bool tracker_is_ready(const Tracker *tracker);

/* No sample is older than that; what was fed before tells what was at that time. */
int tracker_begin(Tracker *tracker, uint64_t floor_ns);
int tracker_feed(Tracker *tracker, const PdEvent *side_band, Bytes records);
/* All side-band is fed of a sweep that began at start_ns. */
int tracker_settle(Tracker *tracker, uint64_t start_ns);
/* The sweep is complete. */
int tracker_complete(Tracker *tracker, uint64_t start_ns);
/* Waits for the build ids for which recordings hold mappings back, where no loop runs any more. */
int tracker_await(Tracker *tracker, uint64_t limit_ns);
/* Who is there: on_processes() tells. */
int tracker_list(Tracker *tracker);
/* One process, again; on_known() tells. */
int tracker_read(Tracker *tracker, uint32_t pid);
/* Walks through the control groups: on_group() and on_groups_done() report what it finds. */
void tracker_walk_groups(Tracker *tracker);
/* All that are there, for the first time. */
int tracker_pass(Tracker *tracker);
/* Once a session asks for them: namespaces of who runs already are read; nothing when they are. */
int tracker_see_namespaces(Tracker *tracker);
/* Whether a session samples stacks, which are unwound with data mappings; reads those of who runs
 * already when the first one does. */
int tracker_see_data(Tracker *tracker, bool see);
/* Reads /proc again, since something went past us. */
int tracker_resync(Tracker *tracker);
/* How often that happened. */
uint64_t tracker_resyncs(const Tracker *tracker);
/* Whether what finds this out runs as it should. */
ScannerHealth tracker_health(const Tracker *tracker);
/* What finding all this out has used of the CPU. */
ScannerCpu tracker_cpu(const Tracker *tracker);
/* A sample of the kernel at this address; modules are read again when nothing is known there. */
void tracker_see_kernel(Tracker *tracker, uint64_t address, uint64_t time_ns);
