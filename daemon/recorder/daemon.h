/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorder as a whole: owns every room of the daemon and joins them. */

#include "call/call-vacuum.h"
#include "config/config.h"
#include "control/control.h"
#include "keeper/request/keeper-client.h"
#include "util/macro.h"

typedef struct Daemon Daemon;

/* The methods of the control socket, which lie above the recorder. */
typedef struct DaemonMethods {
    const ControlMethod *rows;
    size_t n;
    void (*on_connection_gone)(void *userdata, uint64_t connection);
    void (*on_vacuumed)(void *userdata, const VacuumResult *result);
    void (*forget)(Daemon *daemon); /* what calls hold, at the end */
} DaemonMethods;

typedef struct DaemonOptions {
    const char *store, *runtime;
    const char *config_path; /* NULL: the default one */
    char *const *argv;       /* for the CMDLINE of the recording */
    Keeper *keeper;          /* borrowed */
    const DaemonMethods *methods;
} DaemonOptions;

/* Everything open, recording; takes the config. What fails is logged. */
int daemon_new(const DaemonOptions *options, Config *config, Daemon **ret);
/* Until SIGTERM, SIGINT, or until another recorder is to take over; the segments are finished. */
int daemon_run(Daemon *daemon);
Daemon *daemon_free(Daemon *daemon);
DEFINE_CLEANUP(Daemon *, daemon_free);
