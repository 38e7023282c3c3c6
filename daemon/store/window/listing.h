/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lists what a store contains: segments with their spans and files. Usable on any thread.
 */

#include "store/folder/lease.h"
#include "store/manifest/manifest.h"

typedef struct StoreSegmentInfo {
    char session[CONFIG_NAME_MAX];
    char name[SEGMENT_NAME_MAX];
    char boot[40];
    Layout layout;
    bool sensitive;
    uint64_t since_ns, until_ns; /* of its samples, CLOCK_REALTIME; both 0: none or unknown */
    uint64_t samples, lost, bytes;
    StoreStacks stacks; /* all 0: none were unwound, or it is not known */
    Completeness completeness;
    StoreCoverage coverage; /* of the segment from begin to end */
    PdGap gap_before;       /* between the previous segment and this one; to_ns 0: none is known */
    size_t n_files;
} StoreSegmentInfo;

/*
 * Calls fn with each segment, sorted by session name and number, the open one last; `session` NULL:
 * all sessions. Leaves out segments outside of since_ns to until_ns (CLOCK_REALTIME, 0: unbounded).
 * A negative return value of fn stops the iteration. -ENOENT: no such session.
 */
int store_each_segment(Store *store, const char *session, uint64_t since_ns, uint64_t until_ns,
                       int (*fn)(void *userdata, const StoreSegmentInfo *info), void *userdata);
/* Opens one of its files for reading, by the name of layout_file_name() or the first one (""). The
 * open segment is readable as far as it is written. -ENOENT: no such session, segment or file. */
int store_open_segment(Store *store, const char *session, const char *segment, const char *file,
                       int *ret_fd, uint64_t *ret_bytes, bool *ret_sensitive,
                       StoreLease **ret_lease);

/* CLOCK_REALTIME of the first and last sample of a session (NULL: of all); both 0: there is none.
 * Does not touch the disk: returns false if manifests would have to be read, and then the span is
 * that of the other segments. */
bool store_span(Store *store, const char *session, uint64_t *ret_oldest_ns,
                uint64_t *ret_newest_ns);

/* Reads these manifests. This touches the disk, like listing and opening segments, so it is not for
 * the main thread. */
void store_learn_span(Store *store);
/* The coverage of a session in this boot, as far back as its manifests were read. */
StoreCoverage store_coverage(Store *store, const char *session);
