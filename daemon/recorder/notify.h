/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What systemd is told: ready, a line of status, and that the loop and the sweeps still run. All of
 * it is nothing where nobody listens.
 */

#include "loop/loop.h"
#include "session/session-table.h"

typedef struct Notify Notify;

/* is_alive tells whether sweeps come to an end as they should. */
int notify_new(Loop *loop, bool (*is_alive)(void *userdata), void *userdata, Notify **ret);
/* For when the loop does not run for a while; accepts NULL. */
void notify_feed(Notify *notify);
Notify *notify_free(Notify *notify);
DEFINE_CLEANUP(Notify *, notify_free);

void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
/* One line for `systemctl status`; is_outdated: the configuration is not what its file says. */
void notify_status(const SessionTable *sessions, uint64_t now_ns, bool is_outdated);
