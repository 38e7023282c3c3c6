/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A new configuration for a running recorder, in four steps. The whole configuration is read and
 * checked before anything changes, and sessions whose keys are unchanged record without a gap.
 */

#include <jansson.h>

#include "capture/plan/check.h"
#include "config/config.h"
#include "session/session-table.h"

typedef struct Reload {
    const char *path; /* NULL: the default path */
    SessionTable *sessions;
    Sampler *sampler; /* opens events on trial */
    Store *store;
    Config **config; /* freed and replaced on success */

    /* The steps fill in the rest. */
    Config *read;
    int error; /* a negative errno that is no problem of the configuration */
    int n_problems;
    json_t *problems; /* an array of {path, line, text} */
    /* Events to open on trial, and for which sessions of `read`. */
    CpuList online;
    CheckOptions checks[CONFIG_SESSIONS_MAX];
    bool is_checked[CONFIG_SESSIONS_MAX];
} Reload;

/* 1. Reads the files, on a thread that may wait for a disk. */
void reload_read(Reload *reload);
/* 2. On the main thread: decides which sessions open events. False: there is nothing to check. */
bool reload_prepare(Reload *reload);
/* 3. Opens these events for a moment, on a thread that may wait for the keeper. */
void reload_check(Reload *reload);
/* 4. Applies the configuration, on the main thread between two sweeps. Logs its failures. After a
 * failure either nothing has changed or a single session has failed. -EINVAL: the configuration has
 * problems. */
int reload_apply(Reload *reload);
void reload_done(Reload *reload);
