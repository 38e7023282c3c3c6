/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the recorder as a whole share: daemon-run.c (its parts), daemon-sweep.c (what
 * moves through them), daemon-session.c (which sessions there are); and methods, which do what
 * clients ask. */

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
#include "store/snapshot/snapshot-engine.h"
#include "tracker/own-search.h"
#include "tracker/tracker.h"

/* What a connection reads, see method-read.c. */
typedef struct Reading Reading;

struct Daemon {
    DaemonOptions options;
    Config *config;
    Loop *loop;
    LoopSource *sweep_source, *flush_timer;
    LoopSource *late_source; /* sweeps when a wait for build ids ends */
    PdEnvironment *environment;
    Sampler *sampler;
    Tracker *tracker;
    Own *own; /* NULL: whole CPUs are recorded */
    Store *store;
    ByteRate rate;
    Notify *notify;
    SessionTable *sessions;
    Monitor *monitor;
    Waits *waits;
    GroupSearches *searches;
    Housekeeper *housekeeper;
    Housekeeper *opener; /* of sessions, and it closes them */
    LoopSource *opened_source;
    bool learns; /* what the store reaches back to, from its manifests */
    SnapshotEngine *snapshots;
    Vacuum *vacuum;
    Reading *readings;
    char store_path[CONFIG_PATH_MAX];
    RuntimeLog log;
    Control *control;
    KeeperStatus keeper;
    MemoryPlan memory;
    int written_fd;                        /* readable when a writer has written a sweep */
    uint64_t sweep_begin_ns, side_band_ns; /* of the sweep that runs, or the last one */
    uint64_t completed_ns;                 /* the side_band_ns of the last complete one */
    uint64_t sweep_end_ns, losses_ns, status_ns;
    uint64_t began_real_ns;
    uint64_t cpu_at_ns, cpu_ns, cpu_before_at_ns, cpu_before_ns; /* what we used by when */
    uint64_t scan_ns, scan_before_ns; /* likewise, for /proc and programs */
    bool is_ready;                    /* the first pass is over */
    bool is_outdated;                 /* the last reload was refused */
    bool leaving;                     /* another recorder takes over: rings stay */
    bool stopping;                    /* what is left is finished */
    bool waits_for_keeper;            /* and sweeps meanwhile */
};

/* daemon-run.c */
/* Problems go to the log, and to on_problem, which may be NULL. As reload_run(). */
int daemon_reload(Daemon *daemon, ConfigProblem on_problem, void *userdata);

/* A control group may be given as we print it, with \xNN; the one of that very name counts first.
 */
void daemon_settle_group(Daemon *daemon, SessionConfig *config);

/* daemon-sweep.c */
int daemon_sweep(void *userdata);
/* As soon as it may be: now, or 10 ms after the last one began. */
int daemon_sweep_soon(void *userdata);
/* While the main thread waits for the keeper: rings and watchdog must not wait for that. */
void daemon_sweep_meanwhile(void *userdata);
/* Between two sweeps: sessions and CPUs may come and go. */
int daemon_end_sweep(Daemon *daemon);
/* All that the rings hold is in the queues of the writers, losses are told. */
int daemon_drain(void *userdata);
int daemon_on_cpus(void *userdata);
/* The next segment; between two sweeps only. */
int daemon_rotate(Daemon *daemon, SessionEntry *entry, RotateReason reason,
                  const ClockAnchor *clock);
/* Segments for sessions that have none yet, where the kernel's maps are known. */
int daemon_begin_segments(Daemon *daemon);
/* Why all of it is less than asked for, whatever sessions there are; a set of Degraded. */
unsigned daemon_degraded(const Daemon *daemon);
/* For what cannot wait for the next time it would be done. */
void daemon_update_status(Daemon *daemon, uint64_t now_ns);
/* What writers have done since. */
int daemon_look(Daemon *daemon);

/* daemon-session.c */
/* Those of the configuration and those that outlived another recorder: their events. */
int daemon_open_sessions(Daemon *daemon);
/* Their places in the history and the store. */
int daemon_begin_sessions(Daemon *daemon);
/* In the log: what it records, and at its end how much that was. */
void daemon_tell_started(const SessionEntry *entry);
void daemon_tell_stopped(const SessionEntry *entry);
/* Where the next recorder finds what was begun, stopped and paused. */
void daemon_remember(Daemon *daemon);
/* What was begun by Start() ends with us. */
void daemon_forget(Daemon *daemon);
