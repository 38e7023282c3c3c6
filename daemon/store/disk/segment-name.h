/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What things in a session's folder are called. A segment is NNNNNNNN-UTC.perf.data, with a `~`
 * before the suffix when it was recovered, `.open` behind it while it is written and `.damaged`
 * when it cannot be mended. Its stem is what stands before the suffix; beside a file lie
 * STEM.json and, while it is open and has tracepoints, STEM.tracing.
 */

#include <stdbool.h>
#include <stdint.h>

enum { SEGMENT_NAME_MAX = 64, SEGMENT_STAMP_SIZE = 17 }; /* both with their NUL */

typedef enum SegmentState { SEGMENT_CLOSED, SEGMENT_OPEN, SEGMENT_DAMAGED } SegmentState;

typedef struct SegmentName {
    uint64_t number;
    char stamp[SEGMENT_STAMP_SIZE]; /* 20261120T100019Z */
    bool recovered;
    SegmentState state;
} SegmentName;

typedef enum NameKind {
    NAME_SEGMENT,
    NAME_MANIFEST,
    NAME_TRACING,
    NAME_SCRATCH,
    NAME_OURS
} NameKind;

/* The name of a segment that begins at this time of day. */
SegmentName segment_name_at(uint64_t number, uint64_t real_ns);
void segment_name_print(const SegmentName *name, char ret[SEGMENT_NAME_MAX]);
/* STEM and what is given: ".json", ".tracing". */
void segment_name_beside(const SegmentName *name, const char *suffix, char ret[SEGMENT_NAME_MAX]);
/* What a name in a session's folder means; -EBADMSG: nothing of ours. *ret is filled for all but
 * NAME_SCRATCH and NAME_OURS. */
int segment_name_parse(const char *text, NameKind *ret_kind, SegmentName *ret);
/* The time of day in the stamp; 0 when it is none. */
uint64_t segment_name_real_ns(const SegmentName *name);

#define SEQUENCE_FILE ".sequence"
/* In the folder of a session that no configuration has: what it may take is less. */
#define RUNTIME_FILE ".runtime"
/* The next number that the file in this folder promises; 0: there is none, or it says nothing. */
uint64_t sequence_read(int folder);
/* Promises that no number below `next` will be given again. */
int sequence_write(int folder, uint64_t next);
