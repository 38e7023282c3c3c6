/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The methods of io.profd.Control, one file for each family; userdata is the Daemon. */

#include "call/answer.h"
#include "recorder/daemon-private.h"

/* What a step of a method returns beside a negative errno. */
typedef enum MethodStep {
    METHOD_GOES_ON = 0, /* the next step follows */
    METHOD_ENDED = 1,   /* the call was answered, or is in other hands; the method returns 0 */
} MethodStep;

/* Of a call_fail…(), which returns 0 or a negative errno. */
static inline int method_ended(int r) {
    return r < 0 ? r : METHOD_ENDED;
}

/* In method-session.c: */
int method_list_sessions(void *userdata, Call *call);
int method_start(void *userdata, Call *call);
int method_stop(void *userdata, Call *call);
int method_pause(void *userdata, Call *call);
int method_resume(void *userdata, Call *call);

/* In method-rotate.c: */
int method_rotate(void *userdata, Call *call);

/* In method-segment.c: */
int method_list_segments(void *userdata, Call *call);
int method_vacuum(void *userdata, Call *call);
/* Must be called when a vacuum is over. */
void method_vacuum_ended(void *userdata, const VacuumResult *result);

/* In method-binary.c: */
int method_list_binaries(void *userdata, Call *call);
int method_read_binary(Daemon *daemon, Call *call, const char *name);

/* In method-read.c: */
int method_read(void *userdata, Call *call);
/* Releases what a closed connection held. */
void method_forget_connection(Daemon *daemon, uint64_t connection);
void method_forget_connections(Daemon *daemon);
/* Ties a transient snapshot to the connection of the call; readers keep it until they have
 * finished. */
int method_hold_snapshot(Daemon *daemon, const Call *call, const char *name);
/* Whether a connection is reading this snapshot. */
bool method_is_read(Daemon *daemon, const char *snapshot);

/* In method-follow.c: */
int method_follow(void *userdata, Call *call);

/* In method-snapshot.c: */
int method_snapshot(void *userdata, Call *call);
int method_list_snapshots(void *userdata, Call *call);
int method_remove_snapshot(void *userdata, Call *call);
int method_pin_snapshot(void *userdata, Call *call);
/* The type Snapshot of the interface. */
json_t *snapshot_json(const SnapshotInfo *info);

/* In method-status.c: */
int method_ping(void *userdata, Call *call);
int method_get_status(void *userdata, Call *call);
int method_monitor(void *userdata, Call *call);
/* The type Session of the interface; NULL: no memory. */
json_t *session_json(const Daemon *daemon, const SessionEntry *entry);

/* In method-json.c: the names of the files of a segment or snapshot. */
json_t *method_files_json(Layout layout, size_t n);
/* The type Coverage of the interface; null when it is unknown. */
json_t *coverage_json(const StoreCoverage *coverage);
/* null if its to_ns is 0. */
json_t *gap_json(const PdGap *gap);
double daemon_cpu_percent(const Daemon *daemon);
/* The part of it for reading /proc and ELF files. */
double daemon_scan_percent(const Daemon *daemon);

/* In method-metrics.c: */
int method_get_metrics(void *userdata, Call *call);

/* In method-config.c: */
int method_describe(void *userdata, Call *call);
int method_reload(void *userdata, Call *call);
int method_set_log_level(void *userdata, Call *call);

/* In method-lookup.c: */
/* Ends the call with NoSuchSession or NotConfigured and suggests similar names. */
int method_fail_no_session(const Daemon *daemon, Call *call, const char *error, const char *name);
/* WindowUnavailable; the failure is SNAPSHOT_UNAVAILABLE. */
int method_fail_no_window(Call *call, const SnapshotFailure *failure);
/* Ends the call with NoSuchSnapshot and suggests similar names of kept snapshots. */
int method_fail_no_snapshot(const Daemon *daemon, Call *call, const char *name);
/* Returns the session named by the parameter "session"; NULL: the call was ended with
 * NoSuchSession. */
SessionEntry *method_session(Daemon *daemon, Call *call);
int method_fail_not_active(Call *call, const SessionEntry *entry);
/* Finds a snapshot that this client may see; -ENOENT. */
int method_find_snapshot(Daemon *daemon, const Call *call, const char *name, SnapshotInfo *ret);
