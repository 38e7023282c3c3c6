/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A window of time over the segments of one session: which of them it touches, and which part of
 * each, by the clock of its samples. From any thread.
 */

#include "perfdata/reader/reader.h"
#include "perfdata/record/event-union.h"
#include "store/folder/lease.h"
#include "store/window/snapshot-request.h"
#include "store/writer/session-private.h"

typedef struct WindowQuery {
    char session[CONFIG_NAME_MAX];
    uint64_t since_ns, until_ns; /* 0: open */
    bool by_monotonic;           /* else by CLOCK_REALTIME */
    uint64_t asked_ns;           /* how long it is to be, where since_ns does not say; 0: it does */
} WindowQuery;

/* A segment of the window. */
typedef struct WindowPart {
    SegmentName name;
    bool directory;
    uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; UINT64_MAX: open */
    SegmentView view;            /* of the open one */
    int fd;                      /* the file, or the segment's folder; -1: not open */
    int manifest_fd;
    StoreLease *lease;
    Manifest *manifest;                /* NULL: not read (again) */
    uint64_t raw_bytes;                /* to be read, more or less */
    size_t source;                     /* in the window's list */
    uint64_t real_from_ns, real_to_ns; /* what it covers, by CLOCK_REALTIME */
    bool gone;
    bool damaged;
} WindowPart;

typedef struct Window {
    Store *store;
    int folder; /* of the session */
    char session[CONFIG_NAME_MAX];
    char boot[STORE_BOOT_SIZE];
    WindowPart *parts; /* by number */
    size_t n_parts, n_opened;
    PdEventSource *sources; /* parts with the same events share one */
    PdEvents **source_events;
    size_t n_sources;
    bool sensitive;
    char partial[SNAPSHOT_PARTIAL_MAX][SNAPSHOT_TEXT_MAX];
    size_t n_partial;
    PdCoverage coverage; /* of what was asked for, by CLOCK_REALTIME; cpus: those of its segments */
} Window;

/* A negative errno, with *ret_why; -ENOENT and -ENODATA are about what there is. */
int window_new(Store *store, const WindowQuery *query, Window **ret, SnapshotFailure *ret_why);
Window *window_free(Window *window);
DEFINE_CLEANUP(Window *, window_free);
/* window-partial.c */
/* Notes why it is less than was asked for; the same reason once. */
void window_note_partial(Window *window, const char *format, ...) _printf_(2, 3);

/* window-coverage.c */
/* Fills in the coverage, from the segments that are known, by number; what is unreadable too. */
int window_cover(Window *window, const WindowQuery *query, const Entry *const *entries, size_t n);
/* What turned out to be gone or damaged while it was read is none of it. */
void window_uncover(Window *window);
/* In few words. */
StoreCoverage window_covered(const Window *window);
#define WINDOW_NOT_RECORDED "Not recorded from "
/* Notes why it is partial, gap by gap; what concerns CPUs that nobody asked for goes. */
void window_note_gaps(Window *window, const SnapshotFilter *filter);

/* window-part.c */
/* Opens the next ones, so that nobody can take them away; of many segments only so many at a time.
 */
int window_open_ahead(Window *window);
/* Fills in sources and what events of each part belong to. */
int window_read_events(Window *window);
/* The one that was read, or the view's. */
const Manifest *window_manifest(const WindowPart *part);
/* The manifest of a part, with its index. */
int window_read_manifest(Window *window, WindowPart *part);
/* 0: `data` or the file itself; N + 1: data.N. */
int window_open_file(const WindowPart *part, uint32_t file);
void window_part_close(WindowPart *part);
