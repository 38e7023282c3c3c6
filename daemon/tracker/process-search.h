/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Used when only processes of one user may be recorded: lists them from time to time and follows
 * those that are not followed yet.
 */

#include "capture/sampler/sampler.h"
#include "loop/loop.h"
#include "tracker/tracker.h"

typedef struct ProcessSearch ProcessSearch;

int process_search_new(Loop *loop, Sampler *sampler, Tracker *tracker, ProcessSearch **ret);
ProcessSearch *process_search_free(ProcessSearch *search);
DEFINE_CLEANUP(ProcessSearch *, process_search_free);

/* Takes a list of the processes. The next complete sweep that begins after it processes the
 * list. */
int process_search_on_listing(ProcessSearch *search, const ScannerListing *listing);
/* Must be called when the sweep that began at start_ns is complete. */
int process_search_complete(ProcessSearch *search, uint64_t start_ns);
