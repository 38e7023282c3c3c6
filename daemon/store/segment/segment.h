/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One segment while it is written, in either layout. It belongs to one writer thread. A call that
 * fails because of the disk may be repeated with the same arguments and resumes where it stopped.
 */

#include "perfdata/feature/environment.h"
#include "store/disk/seal.h"
#include "store/manifest/manifest.h"
#include "store/segment/segment-plan.h"

enum { SEGMENT_FILES_MAX = 8, SEGMENT_FRAME_RAW_MAX = 256 * 1024 };

typedef struct Segment Segment;

typedef struct SegmentContext {
    const PdEnvironment *environment; /* NULL: unknown */
    const char *boot;                 /* "": unknown */
    Seal *seal;
    bool sensitive;
} SegmentContext;

/* Creates the segment in the folder (the descriptor is copied) and writes the preamble. Takes the
 * plan on success; removes everything it created on failure. */
int segment_open(int folder, SegmentPlan **plan, const SegmentContext *context, Segment **ret);
/* An unfinished segment stays behind as `.open`. */
Segment *segment_free(Segment *segment);
DEFINE_CLEANUP(Segment *, segment_free);

/* *done: how many bytes of the records are written; 0 at first. */
int segment_write(Segment *segment, const StoreBatch *batch, size_t *done);
/* *marked: whether FINISHED_ROUND is written or was not requested. */
int segment_end_sweep(Segment *segment, bool *marked, const ClockAnchor *clock);
/* Notes that everything sampled before to_ns is in the segment. */
void segment_cover(Segment *segment, uint64_t to_ns);
/* Notes that recording stopped at at_ns for this reason, unless another segment follows. */
void segment_leave(Segment *segment, PdGapReason reason, uint64_t at_ns);
/* Saves the coverage so far for a recovery. */
int segment_save_coverage(Segment *segment);
int segment_sync(Segment *segment);
void segment_note(Segment *segment, const SegmentFacts *facts);
/* Whether somebody deleted the file: what is written to it now is lost. */
bool segment_is_gone(const Segment *segment);
/* Writes features and header, syncs, seals, writes the manifest, renames to the final name and
 * syncs the folder. */
int segment_finish(Segment *segment, const ClockAnchor *clock, bool synchronised,
                   uint64_t queue_high_bytes);

const Manifest *segment_manifest(const Segment *segment);
const SegmentName *segment_name(const Segment *segment);
/* The bytes that it takes on the disk now. */
uint64_t segment_bytes(const Segment *segment);
uint64_t segment_raw_bytes(const Segment *segment);
uint64_t segment_stored_bytes(const Segment *segment);
/* Returns the plan, so that the segment can begin again. */
SegmentPlan *segment_take_plan(Segment *segment);
