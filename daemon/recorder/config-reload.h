/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Applies a new configuration to a running recorder. The whole configuration is read and checked
 * before anything changes, and sessions whose keys are unchanged record without a gap.
 */

#include "config/config.h"
#include "session/session-table.h"

typedef struct Reload {
    const char *path; /* NULL: the default path */
    SessionTable *sessions;
    Sampler *sampler; /* opens events on trial */
    Store *store;
    Config **config;          /* freed and replaced on success */
    ConfigProblem on_problem; /* called for each problem in addition to the log; may be NULL */
    void *userdata;
} Reload;

/* Logs its failures. After a failure either nothing has changed or a single session has failed.
 * -EINVAL: the configuration has problems. */
int reload_run(const Reload *reload);
