/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decompresses a stream of zstd frames that comes in chunks, one per COMPRESSED record, into a run
 * of records. Frames may begin and end anywhere, and records may cross chunks: the rest of a record
 * waits for the next chunk. The output is seen through a window, as in a Source.
 */

#include <stdbool.h>
#include <zstd.h>

#include "util/bytes.h"
#include "util/macro.h"

typedef struct Decompress {
    uint8_t *buffer; /* contains the window from start to end */
    size_t start, end, allocated;
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer chunk;
    bool more_inside; /* zstd stopped because the window was full */
    const char *why;
} Decompress;

int decompress_new(unsigned window_log, Decompress **ret);
Decompress *decompress_free(Decompress *d);
DEFINE_CLEANUP(Decompress *, decompress_free);

/* Drops all state before another file. */
void decompress_reset(Decompress *d);
/* The next chunk, borrowed until it is spent. The previous chunk must be spent. */
void decompress_feed(Decompress *d, Bytes chunk);
/* True when no more output comes until the next chunk is fed. */
bool decompress_spent(const Decompress *d);

/* Tries to have n bytes in the window; there are fewer only when the chunk is spent. Returns 0,
 * -EBADMSG for invalid data (see decompress_why()), or -ENOMEM. */
int decompress_want(Decompress *d, size_t n);
const char *decompress_why(const Decompress *d);

static inline Bytes decompress_window(const Decompress *d) {
    if (!d->buffer)
        return (Bytes){};
    return (Bytes){.data = d->buffer + d->start, .size = d->end - d->start};
}

/* n must not exceed the size of the window. */
static inline void decompress_skip(Decompress *d, size_t n) {
    d->start += n;
}
