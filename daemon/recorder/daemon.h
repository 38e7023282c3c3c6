/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorder as a whole: owns every part of the daemon and connects the parts. */

#include "call/call-vacuum.h"
#include "config/config.h"
#include "control/control.h"
#include "keeper/request/keeper-client.h"
#include "util/macro.h"

typedef struct Daemon Daemon;

/* The methods of the control socket. They are passed in because they lie above the recorder. */
typedef struct DaemonMethods {
    const ControlMethod *rows;
    size_t n;
    void (*on_connection_gone)(void *userdata, uint64_t connection);
    void (*on_vacuumed)(void *userdata, const VacuumResult *result);
    void (*forget)(Daemon *daemon); /* frees what unfinished calls hold, at exit */
} DaemonMethods;

typedef struct DaemonOptions {
    const char *store, *runtime;
    const char *config_path; /* NULL: the default path */
    char *const *argv;       /* for the CMDLINE feature of the recordings */
    Keeper *keeper;          /* borrowed */
    const DaemonMethods *methods;
} DaemonOptions;

/* Opens everything and starts recording; takes ownership of config. Logs its failures. */
int daemon_new(const DaemonOptions *options, Config *config, Daemon **ret);
/* Runs until SIGTERM, SIGINT, or until another recorder takes over, then finishes the segments. */
int daemon_run(Daemon *daemon);
Daemon *daemon_free(Daemon *daemon);
DEFINE_CLEANUP(Daemon *, daemon_free);
