/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How far an unfinished file of our own writing is whole: walks the records as they lie, unpacks
 * frames, follows payloads, and stops before the first byte that makes no sense. All the while the
 * records are tallied.
 */

#include "perfdata/writer/tally.h"

typedef struct PdScan {
    uint64_t end;       /* behind the last whole record (or its payload, or its frame) */
    uint64_t raw_bytes; /* of records and payloads, unpacked */
    uint32_t frame_raw; /* the most that a frame held; 0: no frames */
    char damage[160];   /* what stands at `end`; "" where the file ends there */
} PdScan;

/*
 * From `start` of a file of `size` bytes. -EBADMSG: its frames are those of one endless stream, as
 * perf itself writes them, and cannot be judged one by one.
 */
int pd_scan_file(int fd, uint64_t start, uint64_t size, const PdEvents *events, bool swap,
                 PdTally *tally, PdScan *ret);
