/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One stream of zstd frames that comes in chunks, one a COMPRESSED record, and goes out as a run
 * of records. Frames may end and begin anywhere, records may straddle chunks: what is left of a
 * record waits for the next one. What comes out is seen through a window, as in a Source.
 */

#include <stdbool.h>
#include <zstd.h>

#include "util/bytes.h"
#include "util/macro.h"

typedef struct Decompress {
    uint8_t *buffer; /* the window lies in it from start to end */
    size_t start, end, allocated;
    ZSTD_DCtx *zstd;
    ZSTD_inBuffer chunk;
    bool more_inside; /* zstd stopped because the window was full */
    const char *why;
} Decompress;

int decompress_new(unsigned window_log, Decompress **ret);
Decompress *decompress_free(Decompress *d);
DEFINE_CLEANUP(Decompress *, decompress_free);

/* Forgets everything, for the stream of another file. */
void decompress_reset(Decompress *d);
/* The next chunk, borrowed until it is spent. The one before must be spent. */
void decompress_feed(Decompress *d, Bytes chunk);
/* Nothing more will come out until the next chunk is fed. */
bool decompress_spent(const Decompress *d);

/* Tries for n bytes in the window; there are fewer only when the chunk is spent. Returns 0,
 * -EBADMSG for what is no zstd (decompress_why() says how), or -ENOMEM. */
int decompress_want(Decompress *d, size_t n);
const char *decompress_why(const Decompress *d);

static inline Bytes decompress_window(const Decompress *d) {
    if (!d->buffer)
        return (Bytes){};
    return (Bytes){.data = d->buffer + d->start, .size = d->end - d->start};
}

/* n is at most what the window holds. */
static inline void decompress_skip(Decompress *d, size_t n) {
    d->start += n;
}
