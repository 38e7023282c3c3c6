/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/btf-name.h"

#include "test.h"
#include "util/buffer.h"

static void add_type(Buffer *b, bool swap, uint32_t name, uint32_t kind, uint32_t members,
                     size_t extra) {
    buffer_u32(b, name, swap);
    buffer_u32(b, kind << 24 | members, swap);
    buffer_u32(b, 0, swap);
    buffer_zero(b, extra);
}

/* int (1), struct of two members (2), function "second" (3) */
static void add_btf(Buffer *b, bool swap) {
    static const char strings[] = "\0first\0second";

    buffer_u16(b, 0xeb9f, swap);
    buffer_append(b, "\1", 2);
    buffer_u32(b, 24, swap);
    buffer_u32(b, 0, swap);
    buffer_u32(b, 16 + 36 + 12, swap);
    buffer_u32(b, 16 + 36 + 12, swap);
    buffer_u32(b, sizeof(strings), swap);
    add_type(b, swap, 1, 1, 0, 4);
    add_type(b, swap, 0, 4, 2, 24);
    add_type(b, swap, 7, 12, 0, 0);
    buffer_append(b, strings, sizeof(strings));
}

TEST(types_are_named_by_their_number_in_both_byte_orders) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer b = {};
        size_t steps = 100;

        add_btf(&b, swap);
        CHECK(bytes_equal_str(btf_type_name(buffer_bytes(&b), swap, 1, &steps), "first"));
        CHECK(bytes_equal_str(btf_type_name(buffer_bytes(&b), swap, 3, &steps), "second"));
        CHECK_EQ(btf_type_name(buffer_bytes(&b), swap, 2, &steps).size, 0u);
        CHECK_EQ(btf_type_name(buffer_bytes(&b), swap, 4, &steps).size, 0u);
        CHECK_EQ(btf_type_name(buffer_bytes(&b), swap, 0, &steps).size, 0u);
    }
}

TEST(without_steps_no_name_is_found) {
    _cleanup_(buffer_done) Buffer b = {};
    size_t steps = 2;

    add_btf(&b, false);
    CHECK_EQ(btf_type_name(buffer_bytes(&b), false, 3, &steps).size, 0u);
    CHECK_EQ(steps, 0u);
}

TEST(the_bytes_of_a_name_cost_steps) {
    _cleanup_(buffer_done) Buffer b = {};
    size_t steps = 100;

    add_btf(&b, false);
    CHECK_EQ(btf_type_name(buffer_bytes(&b), false, 1, &steps).size, 5u);
    CHECK_EQ(steps, 95u);
    steps = 3;
    CHECK(bytes_equal_str(btf_type_name(buffer_bytes(&b), false, 1, &steps), "fir"));
    CHECK_EQ(steps, 0u);
}

TEST(a_blob_truncated_or_changed_anywhere_is_read_within_its_bytes) {
    _cleanup_(buffer_done) Buffer b = {};

    add_btf(&b, false);
    for (size_t n = 0; n < b.size; n++) {
        _cleanup_free_ uint8_t *cut = malloc(n + 1);
        size_t steps = 100;

        CHECK(cut);
        memcpy(cut, b.data, n);
        (void)btf_type_name((Bytes){.data = cut, .size = n}, false, 3, &steps);
    }
    for (size_t at = 0; at < b.size; at++) {
        size_t steps = 100;

        b.data[at] ^= 0xff;
        (void)btf_type_name(buffer_bytes(&b), false, 3, &steps);
        b.data[at] ^= 0xff;
    }
}

TEST_MAIN()
