/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The store: a folder of segments, locked by one daemon. A Segment is one recording in it, open
 * (`….perf.data.open`) until it is finished and takes its final name.
 */

#include "perfdata/environment.h"
#include "perfdata/event.h"
#include "util/macro.h"

typedef struct Store Store;
typedef struct Segment Segment;

/* Makes the folders that lack, takes the lock (-EBUSY: another daemon has it, told in the log),
 * and finishes what a killed daemon left open. */
int store_open(const char *path, const PdEnvironment *environment, Store **ret);
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free);

/* The next segment of the store, with these events; borrows the store. */
int segment_new(Store *store, const PdEvents *events, int zstd_level, Segment **ret);
/* What is not finished stays behind as `.open`, to be recovered. */
Segment *segment_free(Segment *segment);
DEFINE_CLEANUP(Segment *, segment_free);

int segment_write(Segment *segment, Bytes records);
/* Bounds what a killed daemon loses. */
int segment_flush(Segment *segment);
/* Features, header, sync, final name. */
int segment_finish(Segment *segment, const PdEnvironment *environment);
/* Final path. */
const char *segment_path(const Segment *segment);
