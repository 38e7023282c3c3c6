/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The recorder as a whole: owns every room of the daemon and joins them. */

#include "config/config.h"
#include "util/macro.h"

typedef struct DaemonOptions {
    const char *store;
    const Config *config; /* copied */
    char *const *argv;    /* for the CMDLINE of the recording */
} DaemonOptions;

typedef struct Daemon Daemon;

/* Everything open, recording. What fails is logged. */
int daemon_new(const DaemonOptions *options, Daemon **ret);
/* Until SIGTERM or SIGINT; the segment is then finished. */
int daemon_run(Daemon *daemon);
Daemon *daemon_free(Daemon *daemon);
DEFINE_CLEANUP(Daemon *, daemon_free);
