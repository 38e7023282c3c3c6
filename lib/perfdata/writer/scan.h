/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Finds how much of an unfinished file of ours is valid: reads the records, decompresses frames,
 * follows payloads, and stops before the first byte that makes no sense. The records are tallied at
 * the same time.
 */

#include "perfdata/writer/tally.h"

typedef struct PdScan {
    uint64_t end;       /* after the last whole record (or its payload, or its frame) */
    uint64_t raw_bytes; /* of records and payloads, uncompressed */
    uint32_t frame_raw; /* the largest raw size of a frame; 0: no frames */
    char damage[160];   /* what is at `end`; "" if the file ends there */
} PdScan;

/*
 * Scans from `start` of a file of `size` bytes. -EBADMSG: its frames are parts of one long stream,
 * as perf itself writes them, and cannot be checked one by one.
 */
int pd_scan_file(int fd, uint64_t start, uint64_t size, const PdEvents *events, bool swap,
                 PdTally *tally, PdScan *ret);
