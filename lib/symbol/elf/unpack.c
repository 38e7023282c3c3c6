/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "symbol/elf/unpack.h"

#include <errno.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "util/macro.h"

/* A piece at a time, so that memory grows with what is really there. */

enum {
    PIECE = 256 << 10,
    DECODER_MAX = 128 << 20,
    WINDOW_LOG_MAX = 27,          /* 128 MiB */
    GZIP_WINDOW = 16 + MAX_WBITS, /* 16: a header of gzip is wanted */
    PACKED_MAX = 64 << 20,
    UNPACKED_MAX = 256 << 20,
};

/* Room for the next piece. */
static int unpack_room(Buffer *ret, size_t max, uint8_t **to) {
    if (ret->size >= max)
        return -E2BIG;
    *to = buffer_reserve(ret, PIECE);
    return *to ? 0 : -ENOMEM;
}

static int unpack_run_xz(lzma_stream *stream, size_t max, Buffer *ret) {
    lzma_ret code = LZMA_OK;

    while (code == LZMA_OK) {
        uint8_t *to;
        int r = unpack_room(ret, max, &to);

        if (r < 0)
            return r;
        stream->next_out = to;
        stream->avail_out = PIECE;
        code = lzma_code(stream, LZMA_FINISH);
        buffer_commit(ret, PIECE - stream->avail_out);
    }
    return code == LZMA_STREAM_END ? 0 : code == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int unpack_xz(Bytes packed, size_t max, Buffer *ret) {
    lzma_stream stream = LZMA_STREAM_INIT;
    int r;

    if (lzma_stream_decoder(&stream, DECODER_MAX, 0) != LZMA_OK)
        return -ENOMEM;
    stream.next_in = packed.data;
    stream.avail_in = packed.size;
    r = unpack_run_xz(&stream, max, ret);
    lzma_end(&stream);
    return r;
}

static int unpack_run_zstd(ZSTD_DCtx *context, Bytes packed, size_t max, Buffer *ret) {
    ZSTD_inBuffer in = {.src = packed.data, .size = packed.size};
    size_t left = 1;

    while (left > 0) {
        ZSTD_outBuffer out = {.size = PIECE};
        uint8_t *to;
        int r = unpack_room(ret, max, &to);

        if (r < 0)
            return r;
        out.dst = to;
        left = ZSTD_decompressStream(context, &out, &in);
        buffer_commit(ret, out.pos);
        if (ZSTD_isError(left) || (left > 0 && in.pos == in.size && out.pos < out.size))
            return -EBADMSG;
    }
    return 0;
}

int unpack_zstd(Bytes packed, size_t max, Buffer *ret) {
    ZSTD_DCtx *context = ZSTD_createDCtx();
    int r = -ENOMEM;

    if (context &&
        !ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        r = unpack_run_zstd(context, packed, max, ret);
    ZSTD_freeDCtx(context);
    return r;
}

static int unpack_run_gzip(z_stream *stream, size_t max, Buffer *ret) {
    int code = Z_OK;

    while (code == Z_OK) {
        uint8_t *to;
        int r = unpack_room(ret, max, &to);

        if (r < 0)
            return r;
        stream->next_out = to;
        stream->avail_out = PIECE;
        code = inflate(stream, Z_NO_FLUSH);
        buffer_commit(ret, PIECE - stream->avail_out);
    }
    return code == Z_STREAM_END ? 0 : code == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int unpack_gzip(Bytes packed, size_t max, Buffer *ret) {
    z_stream stream = {.next_in = (z_const Bytef *)packed.data, .avail_in = (uInt)packed.size};
    int r;

    if (packed.size > PACKED_MAX)
        return -E2BIG;
    if (inflateInit2(&stream, GZIP_WINDOW) != Z_OK)
        return -ENOMEM;
    r = unpack_run_gzip(&stream, max, ret);
    (void)inflateEnd(&stream);
    return r;
}

static int unpack_read(int fd, Buffer *ret) {
    for (ssize_t n = 1; n != 0;) {
        uint8_t *to = ret->size < PACKED_MAX ? buffer_reserve(ret, PIECE) : NULL;

        if (!to)
            return ret->size < PACKED_MAX ? -ENOMEM : -E2BIG;
        n = pread(fd, to, PIECE, (off_t)ret->size);
        if (n < 0 && errno != EINTR)
            return -errno;
        buffer_commit(ret, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

int unpack_file(int fd, Buffer *ret) {
    static const struct {
        const char *magic;
        size_t size;
        int (*unpack)(Bytes packed, size_t max, Buffer *ret);
    } kinds[] = {{"\xfd"
                  "7zXZ",
                  6, unpack_xz},
                 {"\x28\xb5\x2f\xfd", 4, unpack_zstd},
                 {"\x1f\x8b\x08", 3, unpack_gzip}};
    _cleanup_(buffer_done) Buffer packed = {};
    char head[6];
    ssize_t n = pread(fd, head, sizeof(head), 0);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (n >= (ssize_t)kinds[i].size && memcmp(head, kinds[i].magic, kinds[i].size) == 0) {
            int r = unpack_read(fd, &packed);

            if (r == 0)
                r = kinds[i].unpack(buffer_bytes(&packed), UNPACKED_MAX, ret);
            return r < 0 ? r : 1;
        }
    return 0;
}
