/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Used when only processes of one user may be recorded: lists them from time to time and follows
 * those that are not followed yet.
 */

#include "capture/sampler/sampler.h"
#include "loop/loop.h"
#include "tracker/tracker.h"

typedef struct Own Own;

int own_new(Loop *loop, Sampler *sampler, Tracker *tracker, Own **ret);
Own *own_free(Own *own);
DEFINE_CLEANUP(Own *, own_free);

/* Takes a list of the processes. The next complete sweep that begins after it processes the
 * list. */
int own_on_listing(Own *own, const ScannerListing *listing);
/* Must be called when the sweep that began at start_ns is complete. */
int own_complete(Own *own, uint64_t start_ns);
