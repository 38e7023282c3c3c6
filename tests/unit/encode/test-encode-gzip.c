/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/gzip.h"

#include <errno.h>
#include <zlib.h>

#include "encode/gzip-pack.h"
#include "test.h"
#include "util/buffer.h"

/* What is compressed is what comes out of zlib's own reader, however it was cut into pieces. */

static int keep(const void *data, size_t size, void *arg) {
    buffer_append(arg, data, size);
    return buffer_error(arg);
}

static int refuse(const void *data, size_t size, void *arg) {
    return -EPIPE;
}

static void inflate_all(const Buffer *packed, Buffer *ret) {
    z_stream stream = {.next_in = packed->data, .avail_in = (unsigned)packed->size};
    uint8_t block[4096];
    int r;

    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        abort();
    do {
        stream.next_out = block;
        stream.avail_out = sizeof(block);
        r = inflate(&stream, Z_NO_FLUSH);
        if (r != Z_OK && r != Z_STREAM_END)
            abort();
        buffer_append(ret, block, sizeof(block) - stream.avail_out);
    } while (r != Z_STREAM_END);
    (void)inflateEnd(&stream);
}

TEST(a_stream_survives_in_pieces) {
    _cleanup_(gzip_freep) Gzip *gzip = NULL;
    _cleanup_(buffer_done) Buffer packed = {}, plain = {}, back = {};

    for (uint32_t i = 0, x = 1; i < 100000; i++, x = x * 1664525 + 1013904223)
        buffer_u32(&plain, x >> 20, false);
    CHECK_OK(gzip_new(GZIP_LEVEL_DEFAULT, keep, &packed, &gzip));
    for (size_t at = 0; at < plain.size; at += 12345)
        CHECK_OK(gzip_write(gzip, plain.data + at, MIN(plain.size - at, (size_t)12345)));
    CHECK_OK(gzip_finish(gzip));
    CHECK(packed.size > 100 && packed.size < plain.size);
    inflate_all(&packed, &back);
    CHECK_EQ(back.size, plain.size);
    CHECK(memcmp(back.data, plain.data, plain.size) == 0);
}

TEST(an_empty_stream_is_whole) {
    _cleanup_(gzip_freep) Gzip *gzip = NULL;
    _cleanup_(buffer_done) Buffer packed = {}, back = {};

    CHECK_OK(gzip_new(1, keep, &packed, &gzip));
    CHECK_OK(gzip_finish(gzip));
    inflate_all(&packed, &back);
    CHECK_EQ(back.size, 0);
}

TEST(a_sink_that_fails_ends_the_work) {
    _cleanup_(gzip_freep) Gzip *gzip = NULL;
    int r;

    CHECK_OK(gzip_new(1, refuse, NULL, &gzip));
    r = gzip_write(gzip, "x", 1);
    CHECK_EQ(r < 0 ? r : gzip_finish(gzip), -EPIPE);
}

TEST(bytes_that_are_compressed_at_once_are_the_same_format) {
    _cleanup_(buffer_done) Buffer packed = {}, plain = {}, back = {};

    buffer_append(&packed, "before", 6);
    for (uint32_t i = 0, x = 1; i < 100000; i++, x = x * 1664525 + 1013904223)
        buffer_u32(&plain, x >> 20, false);
    CHECK_OK(gzip_pack(buffer_bytes(&plain), &packed));
    CHECK(packed.size > 100 && packed.size < plain.size);
    CHECK(memcmp(packed.data, "before", 6) == 0);
    memmove(packed.data, packed.data + 6, packed.size -= 6);
    inflate_all(&packed, &back);
    CHECK_EQ(back.size, plain.size);
    CHECK(memcmp(back.data, plain.data, plain.size) == 0);
    buffer_clear(&packed);
    buffer_clear(&back);
    CHECK_OK(gzip_pack((Bytes){}, &packed));
    inflate_all(&packed, &back);
    CHECK_EQ(back.size, 0);
}

TEST_MAIN()
