/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Feeds the side-band of several segments, one after the other, into a History, so that another
 * recording can be made from their samples. Each segment can be read alone: before the first sample
 * of a process it states the state of the process. If the previous segment stated that already,
 * only new records are passed on. Records of a segment are processed in order of time, wherever
 * they are in the file.
 */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "util/macro.h"

typedef struct SegmentReplay SegmentReplay;

/* `table_bytes`: the limit of its History; 0: the default. */
int segment_replay_new(uint64_t table_bytes, SegmentReplay **ret);
SegmentReplay *segment_replay_free(SegmentReplay *replay);
DEFINE_CLEANUP(SegmentReplay *, segment_replay_free);
History *segment_replay_history(SegmentReplay *replay);

/* Begins the next segment. It has all records of the processes that it names up to `covered_ns`.
 * `events` is borrowed until the next segment begins. */
int segment_replay_begin(SegmentReplay *replay, const PdEvents *events, uint64_t covered_ns);
/* Feeds a side-band record, in file order; those before FINISHED_INIT are the preamble. The record
 * waits until it is settled. */
int segment_replay_feed(SegmentReplay *replay, const PdRecord *record, const PdStamp *stamp);
/* Everything up to that time that later samples of this segment may need has been fed. */
int segment_replay_settle(SegmentReplay *replay, uint64_t until_ns);
/* No sample or side-band record to come is older than this. */
void segment_replay_set_floor(SegmentReplay *replay, uint64_t ns);
