/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Notifications to systemd: a status line, and a watchdog ping while the loop and the sweeps run.
 * Does nothing when no service manager listens.
 */

#include "loop/loop.h"
#include "session/session-table.h"

typedef struct Notify Notify;

/* is_alive returns whether sweeps still complete in time. */
int notify_new(Loop *loop, bool (*is_alive)(void *userdata), void *userdata, Notify **ret);
Notify *notify_free(Notify *notify);
DEFINE_CLEANUP(Notify *, notify_free);

/* Sends one line for `systemctl status`; is_outdated: the running configuration differs from its
 * file. */
void notify_status(const SessionTable *sessions, uint64_t now_ns, bool is_outdated);
