/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The changes that clients made, saved in the runtime folder for a recorder that follows after a
 * crash or an upgrade: sessions that Start() began, sessions that were stopped or paused, and the
 * log level.
 */

#include "session/session-table.h"
#include "util/log.h"

typedef struct SavedSession {
    const char *name;
    bool runtime;
    int enabled; /* Enabled= of its configuration at that time; -1: not known */
    SessionState state;
    uint64_t since_real_ns, state_real_ns, stop_at_ns;
    json_t *settings; /* borrowed; NULL: none */
} SavedSession;

/* The log level, if a client set it at run time. */
typedef struct RuntimeLog {
    bool is_set;
    LogLevel level;
} RuntimeLog;

int runtime_save(const char *folder, const SessionTable *sessions, const RuntimeLog *log);
/* Calls fn for each saved session. -ENOENT: nothing was saved; -ESTALE: the file is from an earlier
 * boot; -EBADMSG: the file cannot be parsed. */
int runtime_load(const char *folder, void (*fn)(void *userdata, const SavedSession *saved),
                 void *userdata, RuntimeLog *ret_log);
void runtime_forget(const char *folder);
