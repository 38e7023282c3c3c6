/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where only processes of one user may be recorded: looks from time to time who they are, and has
 * those followed that nobody followed yet.
 */

#include "capture/sampler/sampler.h"
#include "loop/loop.h"
#include "tracker/tracker.h"

typedef struct Own Own;

int own_new(Loop *loop, Sampler *sampler, Tracker *tracker, Own **ret);
Own *own_free(Own *own);
DEFINE_CLEANUP(Own *, own_free);

/* Lists the processes. The next complete sweep that begins after it is due. */
int own_on_listing(Own *own, const ScannerListing *listing);
/* A sweep is complete that began at start_ns. */
int own_complete(Own *own, uint64_t start_ns);
