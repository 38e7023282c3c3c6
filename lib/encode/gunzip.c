/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/gunzip.h"

#include <errno.h>
#include <zlib.h>

/* The way back of gzip.c: one block of input, and the caller's memory for the output. zlib checks
 * the sum at the end. What follows the first member is not read. */

enum { GUNZIP_BLOCK = 64 * 1024, GUNZIP_WINDOW_BITS = 15, GUNZIP_FORMAT = 16 };

struct Gunzip {
    z_stream stream;
    GunzipSource source;
    void *arg;
    bool is_done;
    uint8_t block[GUNZIP_BLOCK];
};

int gunzip_new(GunzipSource source, void *arg, Gunzip **ret) {
    Gunzip *gunzip = calloc(1, sizeof(*gunzip));

    if (!gunzip)
        return -ENOMEM;
    gunzip->source = source;
    gunzip->arg = arg;
    if (inflateInit2(&gunzip->stream, GUNZIP_WINDOW_BITS + GUNZIP_FORMAT) != Z_OK) {
        free(gunzip);
        return -ENOMEM;
    }
    *ret = gunzip;
    return 0;
}

Gunzip *gunzip_free(Gunzip *gunzip) {
    if (!gunzip)
        return NULL;
    (void)inflateEnd(&gunzip->stream);
    free(gunzip);
    return NULL;
}

static int gunzip_fill(Gunzip *gunzip) {
    ssize_t n = gunzip->source(gunzip->block, GUNZIP_BLOCK, gunzip->arg);

    if (n <= 0)
        return n < 0 ? (int)n : -EBADMSG;
    gunzip->stream.next_in = gunzip->block;
    gunzip->stream.avail_in = (unsigned)n;
    return 0;
}

ssize_t gunzip_read(Gunzip *gunzip, void *data, size_t size) {
    unsigned room = (unsigned)MIN(size, (size_t)1 << 30);

    gunzip->stream.next_out = data;
    gunzip->stream.avail_out = room;
    while (!gunzip->is_done && gunzip->stream.avail_out > 0) {
        int r = gunzip->stream.avail_in == 0 ? gunzip_fill(gunzip) : 0;

        if (r < 0)
            return r;
        r = inflate(&gunzip->stream, Z_NO_FLUSH);
        if (r == Z_STREAM_END)
            gunzip->is_done = true;
        else if (r != Z_OK && r != Z_BUF_ERROR)
            return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
    }
    return (ssize_t)(room - gunzip->stream.avail_out);
}
