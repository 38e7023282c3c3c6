/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "encode/protobuf.h"

#include "test.h"

/* The bytes are those of the examples in the description of the format, or made by protoc. */

static bool holds(const Buffer *b, const char *bytes, size_t n) {
    return buffer_error(b) == 0 && b->size == n && memcmp(b->data, bytes, n) == 0;
}

TEST(a_number_takes_seven_bits_a_byte) {
    _cleanup_(buffer_done) Buffer b = {};

    protobuf_u64(&b, 1, 150);
    CHECK(holds(&b, "\x08\x96\x01", 3));
    buffer_clear(&b);
    protobuf_u64(&b, 1, UINT64_MAX);
    CHECK(holds(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
    buffer_clear(&b);
    protobuf_u64(&b, 16, 1);
    CHECK(holds(&b, "\x80\x01\x01", 3));
}

TEST(a_zero_is_left_out_and_an_empty_member_is_not) {
    _cleanup_(buffer_done) Buffer b = {};

    protobuf_u64(&b, 1, 0);
    protobuf_fixed64(&b, 1, 0);
    protobuf_str(&b, 2, "");
    CHECK_EQ(b.size, 0);
    protobuf_bytes_always(&b, 6, (Bytes){});
    CHECK(holds(&b, "\x32\x00", 2));
}

TEST(texts_and_fixed_numbers_are_written) {
    _cleanup_(buffer_done) Buffer b = {};

    protobuf_str(&b, 2, "testing");
    protobuf_fixed64(&b, 3, 0x0102030405060708);
    CHECK(holds(&b, "\x12\x07testing\x19\x08\x07\x06\x05\x04\x03\x02\x01", 18));
}

TEST(messages_nest) {
    _cleanup_(buffer_done) Buffer b = {};
    size_t outer = protobuf_begin(&b, 3), inner;

    protobuf_u64(&b, 1, 150);
    inner = protobuf_begin(&b, 4);
    protobuf_varint(&b, 3);
    protobuf_varint(&b, 270);
    protobuf_end(&b, inner);
    protobuf_end(&b, outer);
    CHECK(holds(&b, "\x1a\x08\x08\x96\x01\x22\x03\x03\x8e\x02", 10));
}

TEST(a_long_message_gets_a_long_length) {
    _cleanup_(buffer_done) Buffer b = {};
    char text[300];
    size_t begun = protobuf_begin(&b, 1);

    memset(text, 'x', sizeof(text));
    protobuf_bytes(&b, 2, (Bytes){.data = (const uint8_t *)text, .size = sizeof(text)});
    protobuf_end(&b, begun);
    CHECK_OK(buffer_error(&b));
    CHECK_EQ(b.size, 1 + 2 + 1 + 2 + 300);
    CHECK(memcmp(b.data, "\x0a\xaf\x02\x12\xac\x02xx", 8) == 0);
    CHECK_EQ(b.data[b.size - 1], 'x');
}

TEST_MAIN()
