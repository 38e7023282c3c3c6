/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a session counts, settled: which events, with which attrs, the same on every CPU.
 */

#include "capture/plan/plan-settle.h"

/* The target is processes or threads. */
static inline bool plan_has_threads(const SessionConfig *config) {
    return config->n_pids > 0 || config->n_tids > 0;
}

/*
 * Tries what this machine has. An event or group that cannot be opened is left out and noted, the
 * caller logs it; without any event left the error of the first one is returned. What concerns the
 * whole session (its target, descriptors, memory) is logged with its remedy, returned and not
 * noted. Notes are added to `notes` in any case.
 */
int plan_make(const PlanOptions *options, PlanNotes *notes, Plan *ret);
/* Names what is the same between recorders: the session, and all of its configuration that says
 * what is counted. */
uint64_t plan_identity(const SessionConfig *config);
