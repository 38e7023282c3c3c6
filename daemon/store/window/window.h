/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A time window over the segments of one session: which segments it touches and which part of each,
 * by the clock of its samples. Usable from any thread.
 */

#include "perfdata/reader/reader.h"
#include "perfdata/record/event-union.h"
#include "store/folder/lease.h"
#include "store/window/snapshot-request.h"
#include "store/writer/session-private.h"

typedef struct WindowQuery {
    char session[CONFIG_NAME_MAX];
    uint64_t since_ns, until_ns; /* 0: unbounded */
    bool by_monotonic;           /* otherwise CLOCK_REALTIME */
    uint64_t asked_ns;           /* the requested length, if since_ns does not express it; 0: it
                                  * does */
} WindowQuery;

/* A segment in the window. */
typedef struct WindowPart {
    SegmentName name;
    bool directory;
    uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: unbounded */
    SegmentView view;            /* of the open segment */
    int fd;                      /* the file, or the segment's folder; -1: not open */
    int manifest_fd;
    StoreLease *lease;
    Manifest *manifest;                /* NULL: not read or freed again */
    uint64_t raw_bytes;                /* the amount to read, estimated */
    size_t source;                     /* index into the window's sources */
    uint64_t real_from_ns, real_to_ns; /* the span that it covers, CLOCK_REALTIME */
    bool gone;
    bool damaged;
} WindowPart;

typedef struct Window {
    Store *store;
    int folder; /* the session's folder */
    char session[CONFIG_NAME_MAX];
    char boot[STORE_BOOT_SIZE];
    WindowPart *parts; /* sorted by number */
    size_t n_parts, n_opened;
    PdEventSource *sources; /* parts with the same events share a source */
    PdEvents **source_events;
    size_t n_sources;
    bool sensitive;
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX];
    size_t n_partial;
    PdCoverage coverage; /* of the request, CLOCK_REALTIME; cpus: those of the segments */
} Window;

/* A negative errno sets *ret_why; -ENOENT and -ENODATA mean that nothing exists. */
int window_new(Store *store, const WindowQuery *query, Window **ret, SnapshotFailure *ret_why);
Window *window_free(Window *window);
DEFINE_CLEANUP(Window *, window_free);
/* In window-partial.c: */
/* Notes why it has less than was requested; the same reason is noted once. */
void window_note_partial(Window *window, const char *format, ...) _printf_(2, 3);

/* In window-coverage.c: */
/* Fills in the coverage from the known segments, sorted by number, including unreadable ones. */
int window_cover(Window *window, const WindowQuery *query, const Entry *const *entries, size_t n);
/* Removes parts from the coverage that turned out to be gone or damaged. */
void window_uncover(Window *window);
/* A summary of the coverage. */
StoreCoverage window_covered(const Window *window);
#define WINDOW_NOT_RECORDED "Not recorded from "
/* Notes each gap as a reason why the window is partial, except on CPUs that the filter excludes. */
void window_note_gaps(Window *window, const SnapshotFilter *filter);

/* In window-part.c: */
/* Opens the next parts, so that retention cannot take them away; only a limited number is open at
 * once. */
int window_open_ahead(Window *window);
/* Fills in the sources and the events of each part. */
int window_read_events(Window *window);
/* The manifest that was read, or that of the view. */
const Manifest *window_manifest(const WindowPart *part);
/* Reads the manifest of a part, with its index. */
int window_read_manifest(Window *window, WindowPart *part);
/* 0: `data` or the file itself; N + 1: data.N. */
int window_open_file(const WindowPart *part, uint32_t file);
void window_part_close(WindowPart *part);
