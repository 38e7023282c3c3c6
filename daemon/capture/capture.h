/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events and rings: a sampling event and a side-band event on every CPU, each in a ring of its
 * own. Records leave in Batches, whole and in the order of a sweep, to a sink that the owner
 * gives; capture does not know where they go.
 */

#include "perfdata/event.h"
#include "util/bytes.h"
#include "util/macro.h"

typedef struct CaptureOptions {
    uint64_t frequency_hz;
    uint64_t ring_bytes; /* a ring, a power of two */
    bool call_graph;
    bool exclude_idle; /* where the event is a clock: some PMUs refuse it */
    bool exclude_kernel;
} CaptureOptions;

typedef struct Batch {
    Bytes records; /* whole, host order; valid during the call */
    unsigned cpu;
    bool side_band;
} Batch;

typedef int (*CaptureSink)(void *userdata, const Batch *batch);

typedef struct Capture Capture;

/* Opens everything, side-band running, samples not yet. -EACCES or -EPERM: not the rights. */
int capture_new(const CaptureOptions *options, Capture **ret);
Capture *capture_free(Capture *capture);
DEFINE_CLEANUP(Capture *, capture_free);

int capture_start(Capture *capture);
int capture_stop(Capture *capture);

/* Notes the heads of all sample rings, takes all side-band, then the samples up to those heads:
 * no sample leaves before what it needs to be resolved. */
int capture_sweep(Capture *capture, CaptureSink sink, void *userdata);

/* The sampling event first, then the side-band one; ids in CPU order. */
const PdEvents *capture_events(const Capture *capture);
size_t capture_n_cpus(const Capture *capture);
/* Calls fn with the descriptor that becomes readable when a ring fills; all of them. */
int capture_each_fd(Capture *capture, int (*fn)(void *userdata, int fd), void *userdata);
/* Records that the kernel could not place in the rings of a CPU, by its place in the list. */
int capture_lost(const Capture *capture, size_t index, unsigned *ret_cpu, uint64_t *ret_lost);
/* "cycles", or "cpu-clock" where the machine has no PMU. */
const char *capture_event_name(const Capture *capture);
