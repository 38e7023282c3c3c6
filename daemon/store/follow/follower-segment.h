/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One segment that a follower reads, finished or still being written. */

#include "perfdata/reader/frame.h"
#include "store/window/window.h"

/* What is known of a segment without reading its data. */
typedef struct FollowerState {
    SegmentName name;
    bool is_open;
    Manifest *manifest; /* of the open segment: clocks and coverage only */
    uint64_t floor_ns;  /* of the open one: no later record is older */
    uint64_t ends[1 + SEGMENT_FILES_MAX];
    unsigned n_files;
} FollowerState;

void follower_state_done(FollowerState *state);
/* Finds the first segment from this number on: 1, or 0: there is none. *ret_records: the session is
 * writing one. */
int follower_state_find(Store *store, const char *session, uint64_t number, FollowerState *ret,
                        bool *ret_records);

typedef struct FollowerSegment {
    WindowPart part; /* its descriptors and its lease */
    PdFrames *files[1 + SEGMENT_FILES_MAX];
    uint64_t at[1 + SEGMENT_FILES_MAX], ends[1 + SEGMENT_FILES_MAX];
    unsigned n_files;
    PdEvents *events;
    Buffer tracing;
} FollowerSegment;

void follower_segment_init(FollowerSegment *segment);
/* -ENOENT: it was deleted. */
int follower_segment_open(Store *store, const char *session, const FollowerState *state,
                          FollowerSegment *ret);
void follower_segment_done(FollowerSegment *segment);
/* The segment was finished: its files end where they do now. */
int follower_segment_finish(FollowerSegment *segment);
/* Passes each record that was not yet read, up to the ends. -EBADMSG: the data is damaged. */
int follower_segment_read(FollowerSegment *segment,
                          int (*take)(void *userdata, const PdRecord *record), void *userdata);
