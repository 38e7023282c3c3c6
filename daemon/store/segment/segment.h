/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One segment while it is written, in either layout. All of it belongs to one writer thread. What
 * fails for a reason of the disk may be called again with the same arguments and goes on where it
 * stopped.
 */

#include "perfdata/feature/environment.h"
#include "store/disk/seal.h"
#include "store/manifest/manifest.h"
#include "store/segment/segment-plan.h"

enum { SEGMENT_FILES_MAX = 8, SEGMENT_FRAME_RAW_MAX = 256 * 1024 };

typedef struct Segment Segment;

typedef struct SegmentContext {
    const PdEnvironment *environment; /* NULL: not known */
    const char *boot;                 /* "": not known */
    Seal *seal;
    bool sensitive;
} SegmentContext;

/* In the folder (a descriptor that is copied), the preamble written; the plan is taken on success.
 * Whatever could be made of it is removed on failure. */
int segment_open(int folder, SegmentPlan **plan, const SegmentContext *context, Segment **ret);
/* What is not finished stays behind as `.open`. */
Segment *segment_free(Segment *segment);
DEFINE_CLEANUP(Segment *, segment_free);

/* *done: how much of the records is written, 0 at first. */
int segment_write(Segment *segment, const StoreBatch *batch, size_t *done);
/* *marked: whether the mark of the round is written, or was not wanted. */
int segment_end_sweep(Segment *segment, bool *marked, const ClockAnchor *clock);
/* All up to then is in it. */
void segment_cover(Segment *segment, uint64_t to_ns);
/* Nothing behind it is, unless another segment says so. */
void segment_leave(Segment *segment, PdGapReason reason, uint64_t at_ns);
/* So that a recovery knows what it covers by now. */
int segment_save_coverage(Segment *segment);
int segment_sync(Segment *segment);
void segment_note(Segment *segment, const SegmentFacts *facts);
/* Somebody deleted it: nothing more that is written can be found again. */
bool segment_is_gone(const Segment *segment);
/* Features, header, sync, other hands, manifest, final name, sync of the folder. */
int segment_finish(Segment *segment, const ClockAnchor *clock, bool synchronised,
                   uint64_t queue_high_bytes);

const Manifest *segment_manifest(const Segment *segment);
const SegmentName *segment_name(const Segment *segment);
/* What it takes on the disk now. */
uint64_t segment_bytes(const Segment *segment);
uint64_t segment_raw_bytes(const Segment *segment);
uint64_t segment_stored_bytes(const Segment *segment);
/* Hands the plan back, to begin anew. */
SegmentPlan *segment_take_plan(Segment *segment);
