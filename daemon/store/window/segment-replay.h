/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Feeds the side-band of several segments, one after the other, into a History, so that another
 * recording can be made of their samples. Each segment can be read alone: on the first sample of a
 * process it states what the process was. Where the segment before had that already, only the new
 * records are passed on. Records of a segment are taken in the order of their time, wherever they
 * stand in the file.
 */

#include "perfdata/event/event.h"
#include "process/history/history.h"
#include "util/macro.h"

typedef struct SegmentReplay SegmentReplay;

/* `table_bytes`: what its History may take; 0: the default. */
int segment_replay_new(uint64_t table_bytes, SegmentReplay **ret);
SegmentReplay *segment_replay_free(SegmentReplay *replay);
DEFINE_CLEANUP(SegmentReplay *, segment_replay_free);
History *segment_replay_history(SegmentReplay *replay);

/* The next segment. Up to `covered_ns` it has all records of the processes that it names. Its
 * events are borrowed until the next one begins. */
int segment_replay_begin(SegmentReplay *replay, const PdEvents *events, uint64_t covered_ns);
/* A record of its side-band, in the order of the file; those before FINISHED_INIT are its preamble.
 * It waits until it is settled. */
int segment_replay_feed(SegmentReplay *replay, const PdRecord *record, const PdStamp *stamp);
/* Of this segment all was fed up to that time, so far as samples to come may need it. */
int segment_replay_settle(SegmentReplay *replay, uint64_t until_ns);
/* Neither samples nor side-band to come are older. */
void segment_replay_set_floor(SegmentReplay *replay, uint64_t ns);
