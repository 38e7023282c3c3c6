/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One run of records on its way to a descriptor: records wait for their frame, frames and plain
 * bytes wait for the system. A PdWriter has one a file. What was taken is never lost to a failed
 * write: on a file the next flush begins again where the last whole one ended.
 */

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/writer/compress.h"
#include "util/buffer.h"

typedef struct PdStream {
    int fd;                   /* borrowed */
    bool positioned;          /* a file: written by offset; else only appended to */
    uint64_t position;        /* where `out` begins in the file */
    Buffer out;               /* ready for the system */
    Buffer raw;               /* whole records that wait for their frame */
    PdCompressor *compressor; /* borrowed; NULL: plain */
    uint64_t raw_bytes;       /* taken in */
    int broken;               /* not positioned: the error that tore it */
} PdStream;

void pd_stream_done(PdStream *stream);
/* Hands what is ready to the system when there is much of it, so that what follows has room. */
int pd_stream_make_room(PdStream *stream);
/* Whole records, of a stream that compresses. */
int pd_stream_records(PdStream *stream, const void *records, size_t n);
/* Bytes as they are, behind everything so far. */
int pd_stream_plain(PdStream *stream, const void *bytes, size_t n);
int pd_stream_end_frame(PdStream *stream);
/* Ends the frame and writes everything. */
int pd_stream_flush(PdStream *stream);
/* Where the next plain byte would lie but for the open frame. */
uint64_t pd_stream_end(const PdStream *stream);
