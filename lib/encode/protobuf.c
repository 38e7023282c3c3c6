/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/protobuf.h"

#include <endian.h>

/*
 * The wire format of protocol buffers: a field is a key (number and type) and its value. The length
 * of a message is known only at its end and has a variable size itself, so the content moves up by
 * that size then. Messages of profiles are small, which makes that cheaper than a pass to measure.
 */

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_VARINT_MAX = 10 };

static size_t protobuf_put_varint(uint8_t *to, uint64_t v) {
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

void protobuf_varint(Buffer *b, uint64_t v) {
    uint8_t *p = buffer_reserve(b, PROTOBUF_VARINT_MAX);

    if (p)
        buffer_commit(b, protobuf_put_varint(p, v));
}

static void protobuf_key(Buffer *b, uint32_t field, unsigned type) {
    protobuf_varint(b, (uint64_t)field << 3 | type);
}

void protobuf_u64(Buffer *b, uint32_t field, uint64_t v) {
    if (v == 0)
        return;
    protobuf_key(b, field, PROTOBUF_VARINT);
    protobuf_varint(b, v);
}

void protobuf_fixed64(Buffer *b, uint32_t field, uint64_t v) {
    uint64_t little = htole64(v);

    if (v == 0)
        return;
    protobuf_key(b, field, PROTOBUF_FIXED64);
    buffer_append(b, &little, sizeof(little));
}

void protobuf_bytes_always(Buffer *b, uint32_t field, Bytes bytes) {
    protobuf_key(b, field, PROTOBUF_BYTES);
    protobuf_varint(b, bytes.size);
    buffer_append(b, bytes.data, bytes.size);
}

void protobuf_bytes(Buffer *b, uint32_t field, Bytes bytes) {
    if (bytes.size > 0)
        protobuf_bytes_always(b, field, bytes);
}

void protobuf_str(Buffer *b, uint32_t field, const char *s) {
    protobuf_bytes(b, field, (Bytes){.data = (const uint8_t *)s, .size = strlen(s)});
}

size_t protobuf_begin(Buffer *b, uint32_t field) {
    protobuf_key(b, field, PROTOBUF_BYTES);
    return b->size;
}

void protobuf_end(Buffer *b, size_t begun) {
    uint8_t length[PROTOBUF_VARINT_MAX];
    size_t size, n;

    if (buffer_error(b))
        return;
    size = b->size - begun;
    n = protobuf_put_varint(length, size);
    if (!buffer_reserve(b, n))
        return;
    memmove(b->data + begun + n, b->data + begun, size);
    memcpy(b->data + begun, length, n);
    buffer_commit(b, n);
}
