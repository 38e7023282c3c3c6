/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a store holds, for those who ask: segments with their spans, their files.
 * On any thread.
 */

#include "store/folder/lease.h"
#include "store/manifest/manifest.h"

typedef struct StoreSegmentInfo {
    char session[CONFIG_NAME_MAX];
    char name[SEGMENT_NAME_MAX];
    char boot[40];
    Layout layout;
    bool sensitive;
    uint64_t since_ns, until_ns; /* of its samples, CLOCK_REALTIME; both 0: none, or not known */
    uint64_t samples, lost, bytes;
    Completeness completeness;
    StoreCoverage coverage; /* of the segment, from its begin to its end */
    size_t n_files;
} StoreSegmentInfo;

/*
 * Calls fn with each segment, sessions by name and segments by number, the open one last; `session`
 * may be NULL: all. Those that do not touch since_ns to until_ns (CLOCK_REALTIME, 0: open) are left
 * out. A negative return of fn ends it. -ENOENT: no such session.
 */
int store_each_segment(Store *store, const char *session, uint64_t since_ns, uint64_t until_ns,
                       int (*fn)(void *userdata, const StoreSegmentInfo *info), void *userdata);
/* "" for a segment in one file, else "data", "data.0" … */
void store_segment_file_name(const StoreSegmentInfo *info, size_t i, char ret[16]);
/* One of its files by such a name, or the first (""), opened for reading. The open segment is given
 * as far as it is written. -ENOENT: no such session, segment or file. */
int store_open_segment(Store *store, const char *session, const char *segment, const char *file,
                       int *ret_fd, uint64_t *ret_bytes, bool *ret_sensitive,
                       StoreLease **ret_lease);

/* CLOCK_REALTIME of the first and last sample of a session (NULL: of all); both 0: there is none.
 * Takes no disk: false where manifests would have to be read for it, and then it is of the others.
 */
bool store_span(Store *store, const char *session, uint64_t *ret_oldest_ns,
                uint64_t *ret_newest_ns);

/* Reads these; takes a disk, as what lists and opens segments does: not for the main thread. */
void store_learn_span(Store *store);
/* Of a session in this boot, as far back as its manifests were looked at. */
StoreCoverage store_coverage(Store *store, const char *session);
