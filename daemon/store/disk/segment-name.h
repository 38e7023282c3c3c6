/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The names in a session's folder. A segment is NNNNNNNN-UTC.perf.data, with a `~` before the
 * suffix when it was recovered, `.open` appended while it is written and `.damaged` when it cannot
 * be repaired. Its stem is the part before the suffix; next to a file are STEM.json and, while it
 * is open and has tracepoints, STEM.tracing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum { SEGMENT_NAME_MAX = 64, SEGMENT_STAMP_SIZE = 17 }; /* both include the NUL */

typedef enum SegmentState { SEGMENT_CLOSED, SEGMENT_OPEN, SEGMENT_DAMAGED } SegmentState;

typedef struct SegmentName {
    uint64_t number;
    char stamp[SEGMENT_STAMP_SIZE]; /* like 20261120T100019Z */
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

/* The name of a segment that begins at this wall-clock time. */
SegmentName segment_name_at(uint64_t number, uint64_t real_ns);
void segment_name_print(const SegmentName *name, char ret[SEGMENT_NAME_MAX]);
/* STEM and a suffix: ".json", ".tracing". */
void segment_name_beside(const SegmentName *name, const char *suffix, char ret[SEGMENT_NAME_MAX]);
/* The name of file i in the folder of a recording: "data", "data.0" …; "": it is one file. */
void layout_file_name(Layout layout, size_t i, char ret[16]);
/* Parses a name in a session's folder; -EBADMSG: profd did not make it. *ret is filled for all
 * kinds but NAME_SCRATCH and NAME_OURS. */
int segment_name_parse(const char *text, NameKind *ret_kind, SegmentName *ret);
/* The wall-clock time of the stamp; 0: it is invalid. */
uint64_t segment_name_real_ns(const SegmentName *name);

#define SEQUENCE_FILE ".sequence"
/* Marks the folder of a session that is not in the configuration: its share of the store is
 * smaller. */
#define RUNTIME_FILE ".runtime"
/* The next number according to the file in this folder; 0: the file is missing or invalid. */
uint64_t sequence_read(int folder);
/* Promises that numbers below `next` are never used again. */
int sequence_write(int folder, uint64_t next);
