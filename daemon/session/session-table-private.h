/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the session table share. Each part uses only those above it. */

#include "session/session-table.h"

#define WAIT_CHECK_NS 20000000ULL /* while the last build ids of a segment are read */

struct SessionTable {
    SessionTableOptions options;
    SessionEntry *entries[SESSION_TABLE_MAX];
    size_t n;
    LoopSource *timer;
};

/* -- session-list.c -- */

SessionEntry *session_entry_free(SessionEntry *entry);
void session_table_publish(const SessionTable *sessions, const char *event,
                           const SessionEntry *entry, const char *text);
/* A session with missing events is tried again, because a module may be loaded or a probe defined
 * later. */
bool session_table_lacks_events(const SessionEntry *entry);

/* -- session-begin.c -- */

void session_table_retry_later(SessionEntry *entry);
/* Opens one session at a time: the remaining memory for rings is only known when the ones before
 * are open. */
int session_table_open_next(SessionTable *sessions);
void session_table_check_awaiting(SessionTable *sessions, SessionEntry *entry);
