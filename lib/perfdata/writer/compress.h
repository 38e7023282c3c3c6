/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Records into PERF_RECORD_COMPRESSED: one whole zstd frame a record, cut at record ends, so that
 * every reader of the format takes them and damage stays within a frame.
 */

#include "util/buffer.h"
#include "util/bytes.h"

enum {
    PD_FRAME_RAW_MAX = 256 * 1024, /* what a frame may hold; comp_mmap_len promises it to readers */
    PD_FRAME_STORED_MAX = 65520,   /* what zstd may make of it: fits a record with its header */
};

typedef struct PdCompressor PdCompressor;

/* level: 1 to 22. */
int pd_compressor_new(int level, bool swap, PdCompressor **ret);
PdCompressor *pd_compressor_free(PdCompressor *compressor);
DEFINE_CLEANUP(PdCompressor *, pd_compressor_free);

/*
 * Appends to `out` what `records` (whole ones, none empty or above 64 KiB) become: frames, and
 * plain records where a frame would not be smaller. Unless `all`, stops while a last frame could
 * still take more; *ret_taken: how many bytes of `records` are done.
 */
int pd_compressor_take(PdCompressor *compressor, Bytes records, bool all, Buffer *out,
                       size_t *ret_taken);
