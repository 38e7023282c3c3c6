/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/gzip.h"

#include <errno.h>
#include <zlib.h>

/* zlib does the work; this file is the only one that includes it. Its output goes through one block
 * of memory to the sink, so memory is the same for every stream. */

enum { GZIP_BLOCK = 64 * 1024, GZIP_WINDOW_BITS = 15, GZIP_FORMAT = 16, GZIP_MEMORY_LEVEL = 8 };

struct Gzip {
    z_stream stream;
    GzipSink sink;
    void *arg;
    uint8_t block[GZIP_BLOCK];
};

int gzip_new(int level, GzipSink sink, void *arg, Gzip **ret) {
    Gzip *gzip = calloc(1, sizeof(*gzip));
    int r;

    if (!gzip)
        return -ENOMEM;
    gzip->sink = sink;
    gzip->arg = arg;
    r = deflateInit2(&gzip->stream, level, Z_DEFLATED, GZIP_WINDOW_BITS + GZIP_FORMAT,
                     GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
    if (r != Z_OK) {
        free(gzip);
        return r == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
    }
    *ret = gzip;
    return 0;
}

Gzip *gzip_free(Gzip *gzip) {
    if (!gzip)
        return NULL;
    (void)deflateEnd(&gzip->stream);
    free(gzip);
    return NULL;
}

static int gzip_run(Gzip *gzip, int flush) {
    int r = 0, status;

    do {
        gzip->stream.next_out = gzip->block;
        gzip->stream.avail_out = GZIP_BLOCK;
        status = deflate(&gzip->stream, flush);
        if (status == Z_STREAM_ERROR)
            return -EINVAL;
        if (gzip->stream.avail_out < GZIP_BLOCK)
            r = gzip->sink(gzip->block, GZIP_BLOCK - gzip->stream.avail_out, gzip->arg);
    } while (r >= 0 && gzip->stream.avail_out == 0);
    return MIN(r, 0);
}

int gzip_write(Gzip *gzip, const void *data, size_t size) {
    const uint8_t *p = data;
    int r = 0;

    while (size > 0 && r == 0) {
        size_t n = MIN(size, (size_t)1 << 30);

        gzip->stream.next_in = (void *)p;
        gzip->stream.avail_in = (unsigned)n;
        r = gzip_run(gzip, Z_NO_FLUSH);
        p += n;
        size -= n;
    }
    return r;
}

int gzip_finish(Gzip *gzip) {
    gzip->stream.next_in = NULL;
    gzip->stream.avail_in = 0;
    return gzip_run(gzip, Z_FINISH);
}
