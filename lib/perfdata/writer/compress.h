/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Compresses records into PERF_RECORD_COMPRESSED: each contains one whole zstd frame, cut between
 * records, so that every reader of the format accepts them and damage stays within a frame.
 */

#include "util/buffer.h"
#include "util/bytes.h"

enum {
    PD_FRAME_RAW_MAX = 256 * 1024, /* the most that a frame may contain; comp_mmap_len announces
                                    * it to readers */
    PD_FRAME_STORED_MAX = 65520,   /* the largest compressed frame that fits into a record with
                                    * its header */
};

typedef struct PdCompressor PdCompressor;

/* level: 1 to 22. */
int pd_compressor_new(int level, bool swap, PdCompressor **ret);
PdCompressor *pd_compressor_free(PdCompressor *compressor);
DEFINE_CLEANUP(PdCompressor *, pd_compressor_free);

/*
 * Compresses `records` (whole ones, none empty or above 64 KiB) and appends frames to `out`, or
 * plain records where a frame would not be smaller. Unless `all` is set, stops while the last frame
 * still has room; *ret_taken: how many bytes of `records` were used.
 */
int pd_compressor_take(PdCompressor *compressor, Bytes records, bool all, Buffer *out,
                       size_t *ret_taken);
