/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/reader/decompress.h"

#include <errno.h>

/*
 * The window that zstd writes into. Only one window of the output exists at a time, however much a
 * chunk expands to: a decompression bomb costs time, not memory. zstd's own memory is bounded by
 * the largest window that a frame may request.
 */

enum { WINDOW = 256 * 1024 };

int decompress_new(unsigned window_log, Decompress **ret) {
    _cleanup_(decompress_freep) Decompress *d = calloc(1, sizeof(*d));

    if (!d)
        return -ENOMEM;
    d->why = "";
    d->zstd = ZSTD_createDCtx();
    if (!d->zstd)
        return -ENOMEM;
    if (ZSTD_isError(ZSTD_DCtx_setParameter(d->zstd, ZSTD_d_windowLogMax, (int)window_log)))
        return -EINVAL;
    *ret = TAKE_PTR(d);
    return 0;
}

Decompress *decompress_free(Decompress *d) {
    if (!d)
        return NULL;
    ZSTD_freeDCtx(d->zstd);
    free(d->buffer);
    free(d);
    return NULL;
}

void decompress_reset(Decompress *d) {
    (void)ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
    d->chunk = (ZSTD_inBuffer){};
    d->more_inside = false;
    d->start = d->end = 0;
}

void decompress_feed(Decompress *d, Bytes chunk) {
    assert(decompress_spent(d));
    d->chunk = (ZSTD_inBuffer){.src = chunk.data, .size = chunk.size};
}

bool decompress_spent(const Decompress *d) {
    return d->chunk.pos == d->chunk.size && !d->more_inside;
}

const char *decompress_why(const Decompress *d) {
    return d->why;
}

static int decompress_make_room(Decompress *d, size_t n) {
    size_t left = d->end - d->start;
    uint8_t *grown;

    if (d->start > 0) {
        memmove(d->buffer, d->buffer + d->start, left);
        d->start = 0;
        d->end = left;
    }
    n = MAX(n, (size_t)WINDOW);
    if (d->allocated >= n)
        return 0;
    grown = realloc(d->buffer, n);
    if (!grown)
        return -ENOMEM;
    d->buffer = grown;
    d->allocated = n;
    return 0;
}

int decompress_want(Decompress *d, size_t n) {
    while (d->end - d->start < n && !decompress_spent(d)) {
        int r = decompress_make_room(d, n);
        ZSTD_outBuffer out = {.dst = d->buffer, .size = d->allocated, .pos = d->end};
        size_t before = d->chunk.pos, status;

        if (r < 0)
            return r;
        status = ZSTD_decompressStream(d->zstd, &out, &d->chunk);
        if (ZSTD_isError(status)) {
            d->why = ZSTD_getErrorName(status);
            return -EBADMSG;
        }
        if (out.pos == d->end && d->chunk.pos == before && !d->more_inside) {
            d->why = "no progress";
            return -EBADMSG;
        }
        d->more_inside = out.pos == out.size && status != 0;
        d->end = out.pos;
    }
    return 0;
}
