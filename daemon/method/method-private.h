/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods of io.profd.Control, a file a family; userdata is the Daemon. */

#include "call/answer.h"
#include "recorder/daemon-private.h"

/* method-session.c */
int method_list_sessions(void *userdata, Call *call);
int method_start(void *userdata, Call *call);
int method_stop(void *userdata, Call *call);
int method_pause(void *userdata, Call *call);
int method_resume(void *userdata, Call *call);

/* method-rotate.c */
int method_rotate(void *userdata, Call *call);

/* method-segment.c */
int method_list_segments(void *userdata, Call *call);
int method_vacuum(void *userdata, Call *call);
/* To be told when a vacuum is over, whoever waits for it. */
void method_vacuum_ended(void *userdata, const VacuumResult *result);

/* method-read.c */
int method_read(void *userdata, Call *call);
/* What a connection held that is gone. */
void method_forget_connection(Daemon *daemon, uint64_t connection);
void method_forget_connections(Daemon *daemon);
/* A transient snapshot goes with the connection of the call, and those that read it then. */
int method_hold_snapshot(Daemon *daemon, const Call *call, const char *name);
/* Whether a snapshot is on its way to somebody. */
bool method_is_read(Daemon *daemon, const char *snapshot);

/* method-snapshot.c */
int method_snapshot(void *userdata, Call *call);
int method_list_snapshots(void *userdata, Call *call);
int method_remove_snapshot(void *userdata, Call *call);
int method_pin_snapshot(void *userdata, Call *call);
/* Snapshot of the interface. */
json_t *snapshot_json(const SnapshotInfo *info);

/* method-status.c */
int method_ping(void *userdata, Call *call);
int method_get_status(void *userdata, Call *call);
int method_monitor(void *userdata, Call *call);
/* Session of the interface; NULL without memory. */
json_t *session_json(const Daemon *daemon, const SessionEntry *entry);

/* method-json.c: Coverage of the interface; null where it is not known. */
json_t *coverage_json(const StoreCoverage *coverage);
double daemon_cpu_percent(const Daemon *daemon);
/* How much of it is for reading /proc and programs. */
double daemon_scan_percent(const Daemon *daemon);

/* method-metrics.c */
int method_get_metrics(void *userdata, Call *call);

/* method-config.c */
int method_describe(void *userdata, Call *call);
int method_reload(void *userdata, Call *call);
int method_set_log_level(void *userdata, Call *call);

/* method-lookup.c */
/* Ends the call with NoSuchSession or NotConfigured, and the names that may be meant. */
int method_fail_no_session(const Daemon *daemon, Call *call, const char *error, const char *name);
/* Ends the call with NoSuchSnapshot, and the names of kept snapshots that may be meant. */
int method_fail_no_snapshot(const Daemon *daemon, Call *call, const char *name);
/* The session that a call names in "session"; NULL: the call was ended with NoSuchSession. */
SessionEntry *method_session(Daemon *daemon, Call *call);
int method_fail_not_active(Call *call, const SessionEntry *entry);
/* One that this peer may know of; -ENOENT. */
int method_find_snapshot(Daemon *daemon, const Call *call, const char *name, SnapshotInfo *ret);
