/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Publishes events to the clients that called Monitor() and are still connected. */

#include "control/control.h"
#include "util/macro.h"

typedef struct MonitorEvent {
    const char *event, *text;
    const char *session, *path; /* may be NULL */
    uint64_t count;
    bool has_count;
} MonitorEvent;

typedef struct Monitor Monitor;

int monitor_new(Monitor **ret);
Monitor *monitor_free(Monitor *monitor);
DEFINE_CLEANUP(Monitor *, monitor_free);

/* Subscribes the call; `text` goes into its first reply. */
int monitor_subscribe(Monitor *monitor, Call *call, const char *text);
void monitor_publish(Monitor *monitor, const MonitorEvent *event);
