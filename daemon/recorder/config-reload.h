/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A new configuration into a running recorder: all of it is read and checked before anything
 * changes. Sessions that it does not touch go on without a gap.
 */

#include "config/config.h"
#include "session/session-table.h"

typedef struct Reload {
    const char *path; /* NULL: the default one */
    SessionTable *sessions;
    Sampler *sampler; /* by which events are tried */
    Store *store;
    Config **config;          /* replaced */
    ConfigProblem on_problem; /* beside the log; may be NULL */
    void *userdata;
} Reload;

/* What fails is logged, and then nothing has changed, or one session alone. -EINVAL: the
 * configuration has problems. */
int reload_run(const Reload *reload);
