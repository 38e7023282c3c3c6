/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the recorder share: daemon-start.c (builds and frees the parts), daemon-run.c
 * (runs the loop), daemon-sweep.c (moves records through them), daemon-session.c (manages the list
 * of sessions) and daemon-reload.c (takes over a new configuration). The methods use it too, to do
 * what clients ask for. */

#include <sys/queue.h>

#include "binary/binaries.h"
#include "call/call-monitor.h"
#include "call/call-vacuum.h"
#include "call/group-search.h"
#include "call/wait.h"
#include "control/control.h"
#include "loop/loop.h"
#include "recorder/daemon.h"
#include "recorder/memory-limit.h"
#include "recorder/notify.h"
#include "session/runtime.h"
#include "session/session-table.h"
#include "store/follow/follower.h"
#include "store/snapshot/snapshot-engine.h"
#include "tracker/process-search.h"
#include "tracker/tracker.h"

/* The state of a connection that reads a recording, see method-read.c. */
typedef struct Reading Reading;

/* A configuration that is being read and checked, see daemon-reload.c. */
typedef struct Reloading Reloading;

/* When the running or the last sweep passed each stage, and when it last made its checks. */
typedef struct SweepTimes {
    uint64_t begin_ns;
    uint64_t side_band_ns; /* the heads of the sample rings were noted */
    uint64_t end_ns;
    uint64_t completed_ns; /* side_band_ns of the last complete sweep */
    uint64_t losses_ns, data_loss_ns, status_ns;
    uint64_t early_until_ns; /* sweeps follow each other soon */
    ClockAnchor clock;       /* at the end of the last sweep */
    bool has_resynced;       /* /proc is read again, since CPUs came */
} SweepTimes;

/* The CPU time of all processes of profd up to a moment, and the part of it for /proc and ELF
 * files.
 */
typedef struct CpuPoint {
    uint64_t at_ns, cpu_ns, scan_ns;
} CpuPoint;

struct Daemon {
    DaemonOptions options;
    Config *config;
    Loop *loop;
    LoopSource *sweep_source, *flush_timer;
    LoopSource *follow_source; /* triggers the next sweep for followers */
    LoopSource *late_source;   /* triggers a sweep when the wait for build ids times out */
    PdEnvironment *environment;
    Sampler *sampler;
    Tracker *tracker;
    Unwinder *unwinder;
    Binaries *binaries;            /* NULL: nothing is kept yet */
    ProcessSearch *process_search; /* NULL: profd records whole CPUs */
    Store *store;
    ByteRate rate;
    Notify *notify;
    SessionTable *sessions;
    Monitor *monitor;
    Waits *waits;
    GroupSearches *searches;
    Worker *housekeeper;
    Worker *opener;                  /* runs the opening and closing of sessions on its thread */
    Worker *reader;                  /* reads a new configuration */
    Reloading *reload, *next_reload; /* the one that runs, and the one that waits for its end */
    LoopSource *opened_source;
    bool learns; /* the manifests are being read to find how far back the store reaches */
    SnapshotEngine *snapshots;
    FollowerList *followers;
    Vacuum *vacuum;
    LIST_HEAD(, Reading) readings;
    char store_path[CONFIG_PATH_MAX];
    RuntimeLog log;
    Control *control;
    KeeperStatus keeper;
    MemoryPlan memory;
    int written_fd; /* becomes readable when a writer has written a sweep */
    SweepTimes sweep;
    CpuPoint cpu, cpu_before; /* two moments, for the rate */
    uint64_t began_real_ns;
    bool is_ready;    /* the first pass over /proc is complete */
    bool is_outdated; /* the last reload was refused */
    bool leaving;     /* another recorder takes over: keep the rings open */
    bool stopping;    /* the main loop has ended, segments are being finished */
};

/* In daemon-run.c: */
/* Adds all that wakes the main thread. */
int daemon_add_sources(Daemon *daemon);
/* The first pass over /proc is complete: from now on side-band reports what changes. */
int daemon_on_ready(void *userdata);

/* In daemon-reload.c: */
/* Begins to read the configuration again, or lets the reload that waits do it. -ENOMEM; release
 * *ret when you have seen its end. */
int daemon_reload(Daemon *daemon, Reloading **ret);
/* True when the sessions that it began anew record again, or when it failed. *ret_error: 0, or as
 * of reload_apply(); *ret_problems lives as long as it. */
bool daemon_reload_is_done(const Reloading *reloading, int *ret_error, json_t **ret_problems);
void daemon_reload_release(void *reloading);

/* Unescapes \xNN in the path of a control group, because status prints it escaped. A group whose
 * name really contains a backslash takes precedence. */
void daemon_settle_group(Daemon *daemon, SessionConfig *config);

/* In daemon-sweep.c: */
int daemon_sweep(void *userdata);
/* Starts a sweep now, or 10 ms after the last one began, whichever is later. */
int daemon_sweep_soon(void *userdata);
/* All build ids that were asked for have been read or checked. */
int daemon_on_answered(void *userdata);
/* For some seconds, sweeps a few times a second where stacks are unwound. */
void daemon_sweep_early(Daemon *daemon);
/* Sweeps as often as clients that follow sessions want what is new. */
int daemon_follow_sweep(void *userdata);
/* Sweeps at each flush interval; replaces the timer, if any. */
int daemon_add_flush_timer(Daemon *daemon);
/* Completes a running sweep. Sessions and CPUs may only be added or removed between two sweeps. */
int daemon_end_sweep(Daemon *daemon);
/* Moves everything that the rings hold into the queues of the writers and records losses. */
int daemon_drain(void *userdata);
int daemon_on_cpus(void *userdata);
/* Begins the next segment; call it only between two sweeps. */
int daemon_rotate(Daemon *daemon, SessionEntry *entry, RotateReason reason,
                  const ClockAnchor *clock);
/* Begins a segment for each session that has none, as soon as the kernel's maps are known. */
int daemon_begin_segments(Daemon *daemon);
/* The reasons that degrade every session alike; a set of Degraded. */
unsigned daemon_degraded(const Daemon *daemon);
/* Updates the status before its next periodic update. */
void daemon_update_status(Daemon *daemon, uint64_t now_ns);
/* Handles what the writers have finished since the last call. */
int daemon_check_writers(Daemon *daemon);

/* In daemon-session.c: */
/* Opens the events of the configured sessions and of those that the previous recorder left
 * behind. */
int daemon_open_sessions(Daemon *daemon);
/* Attaches the open sessions to the history and the store. */
int daemon_begin_sessions(Daemon *daemon);
/* Log what a session records when it starts, and how much it recorded when it stops. */
void daemon_log_started(const SessionEntry *entry);
void daemon_log_stopped(const SessionEntry *entry);
/* Saves the sessions that clients started, stopped or paused, for the next recorder. */
void daemon_remember(Daemon *daemon);
/* Drops saved sessions: those that Start() began end together with profd. */
void daemon_forget(Daemon *daemon);
