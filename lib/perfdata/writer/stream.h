/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One run of records to a descriptor: records wait until their frame is full, frames and plain
 * bytes wait for the system. A PdWriter has one for each file. A failed write loses nothing: on a
 * file the next flush continues after the last complete write.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/writer/compress.h"
#include "util/buffer.h"

typedef struct PdStream {
    int fd;                   /* borrowed */
    bool positioned;          /* a file, written by offset; else it is only appended to */
    uint64_t position;        /* file offset of the start of `out` */
    Buffer out;               /* ready to be written */
    Buffer raw;               /* whole records that wait for their frame */
    PdCompressor *compressor; /* borrowed; NULL: uncompressed */
    uint64_t raw_bytes;       /* bytes that were added */
    int broken;               /* not positioned: the error that interrupted a write */
} PdStream;

void pd_stream_done(PdStream *stream);
/* Writes what is ready if there is much of it, so that the next data has room. */
int pd_stream_make_room(PdStream *stream);
/* Adds whole records, to a stream that compresses. */
int pd_stream_records(PdStream *stream, const void *records, size_t n);
/* Adds bytes as they are, after everything so far. */
int pd_stream_plain(PdStream *stream, const void *bytes, size_t n);
int pd_stream_end_frame(PdStream *stream);
/* Ends the frame and writes everything. */
int pd_stream_flush(PdStream *stream);
/* The offset of the next plain byte, not counting the open frame. */
uint64_t pd_stream_end(const PdStream *stream);
