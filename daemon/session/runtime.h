/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What clients did, kept in the runtime folder for the recorder that follows one that died or made
 * room: sessions that Start() began, those that were stopped, those that rest, and the level of the
 * log.
 */

#include "session/session-table.h"
#include "util/log.h"

typedef struct SavedSession {
    const char *name;
    bool runtime;
    SessionState state;
    uint64_t since_real_ns, state_real_ns, stop_at_ns;
    json_t *settings; /* borrowed; NULL: none */
} SavedSession;

/* That was set while we ran. */
typedef struct RuntimeLog {
    bool is_set;
    LogLevel level;
} RuntimeLog;

int runtime_save(const char *folder, const SessionTable *sessions, const RuntimeLog *log);
/* Calls fn for each. -ENOENT: nothing was kept; -ESTALE: it is of another boot; -EBADMSG: it makes
 * no sense. */
int runtime_load(const char *folder, void (*fn)(void *userdata, const SavedSession *saved),
                 void *userdata, RuntimeLog *ret_log);
void runtime_forget(const char *folder);
