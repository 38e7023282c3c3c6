/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a follower sends: which records of its segments, and the marks between them. */

#include "perfdata/writer/writer.h"
#include "store/follow/follower-option.h"
#include "store/follow/follower-segment.h"

/* The gaps between the beginning of the window and its first segment, by CLOCK_REALTIME. */
typedef struct FollowerBefore {
    uint64_t number; /* of that segment */
    PdGap gaps[2];
    size_t n;
} FollowerBefore;

typedef struct FollowerStream {
    Store *store;
    const FollowerOptions *options; /* borrowed */
    const FollowerBefore *before;   /* borrowed */
    int socket;
    int (*send)(void *to, Bytes bytes);
    void *to;
    int memory; /* where `writer` writes: attrs and other records of a stream's header */
    PdWriter *writer;
    PdEvents *events; /* those that were sent */
    bool begun, directory;
    FollowerSegment segment;
    Buffer out;
    uint64_t since_ns, until_ns; /* of this segment, CLOCK_MONOTONIC */
    uint64_t real_offset;
    uint64_t watermark_ns;
    uint64_t greatest_ns, round_ns; /* the latest time so far, and at the last FINISHED_ROUND */
    uint64_t number;                /* of the last segment; 0: none */
    uint64_t covered_to_ns;         /* by the last segment; 0: unknown */
    bool has_skipped;               /* it is behind the window, and what lies between was told */
    char boot[MANIFEST_TEXT_MAX];   /* of the last segment */
    uint64_t slept_ns;              /* before it, since the boot; UINT64_MAX: unknown */
    PdGapReason after;
    PdGap gaps[PD_GAPS_MAX]; /* of this segment, those that were sent */
    size_t n_gaps;
} FollowerStream;

/* `from` has what is borrowed, and whom to send to. */
int follower_stream_open(const FollowerStream *from, FollowerStream *ret);
void follower_stream_done(FollowerStream *stream);
/* Begins the next segment. 1: the window has ended before it. */
int follower_stream_begin(FollowerStream *stream, const FollowerState *state);
/* Sends what is new in it. 1: the window has ended. */
int follower_stream_pass(FollowerStream *stream, const FollowerState *state);
int follower_stream_finish_segment(FollowerStream *stream);
int follower_stream_end_segment(FollowerStream *stream, uint64_t number);
/* The last mark. */
int follower_stream_finish(FollowerStream *stream);
