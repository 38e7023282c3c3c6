/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/unwind-table.h"

#include "make-elf.h"
#include "test.h"

/* Reading images: what is found where, and that no byte of an image leads out of it. */

static void make_image(Buffer *image) {
    UnwindTable table;
    MadeElf elf = {};
    size_t cie = made_cie(&elf.eh_frame, false);

    for (unsigned i = 0; i < 64; i++)
        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT + 64 * i, 32, 0x41, 0x0e,
                 (uint8_t)(8 + 8 * (i % 8)));
    if (made_compile(&elf, image, &table) < 0)
        abort();
}

TEST(rule_is_found_at_each_address) {
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    make_image(&image);
    CHECK_OK(unwind_table_open(buffer_bytes(&image), &table));
    CHECK_EQ(unwind_table_find(&table, MADE_TEXT - 1).kind, UNWIND_NONE);
    for (unsigned i = 0; i < MADE_TEXT_SIZE; i++) {
        UnwindRule rule = unwind_table_find(&table, MADE_TEXT + i);

        CHECK_EQ(rule.kind, i % 64 < 32 ? UNWIND_OFFSET : UNWIND_NONE);
        if (i % 64 < 32)
            CHECK_EQ(rule.offset, i % 64 ? 8 + 8 * (i / 64 % 8) : 8);
    }
    CHECK_EQ(unwind_table_find(&table, MADE_TEXT + MADE_TEXT_SIZE).kind, UNWIND_NONE);
    CHECK_EQ(unwind_table_find(&table, UINT64_MAX).kind, UNWIND_NONE);
}

TEST(a_truncated_image_is_refused) {
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    make_image(&image);
    for (size_t size = 0; size < image.size; size++)
        CHECK_EQ(unwind_table_open((Bytes){.data = image.data, .size = size}, &table), -EBADMSG);
    CHECK_EQ(unwind_table_open((Bytes){.data = image.data + 4, .size = image.size - 4}, &table),
             -EBADMSG);
}

#define OPEN_WITH(field, value)                                                                    \
    ({                                                                                             \
        UnwindHeader _header;                                                                      \
        UnwindTable _table;                                                                        \
        memcpy(&_header, image.data, sizeof(_header));                                             \
        _header.field = (value);                                                                   \
        memcpy(changed.data, &_header, sizeof(_header));                                           \
        unwind_table_open(buffer_bytes(&changed), &_table);                                        \
    })

TEST(a_header_with_wrong_sizes_is_refused) {
    _cleanup_(buffer_done) Buffer image = {};
    _cleanup_(buffer_done) Buffer changed = {};

    make_image(&image);
    buffer_append(&changed, image.data, image.size);
    CHECK_OK(OPEN_WITH(base, UINT64_MAX));
    CHECK_EQ(OPEN_WITH(magic, 0), -EBADMSG);
    CHECK_EQ(OPEN_WITH(version, 99), -EBADMSG);
    CHECK_EQ(OPEN_WITH(machine, EM_386), -EBADMSG);
    CHECK_EQ(OPEN_WITH(span, UINT32_MAX), -EBADMSG);
    CHECK_EQ(OPEN_WITH(page_shift, 0), -EBADMSG);
    CHECK_EQ(OPEN_WITH(page_shift, 32), -EBADMSG);
    CHECK_EQ(OPEN_WITH(n_segments, UNWIND_SEGMENTS_MAX + 1), -EBADMSG);
    CHECK_EQ(OPEN_WITH(n_rules, UINT32_MAX), -EBADMSG);
    CHECK_EQ(OPEN_WITH(n_pages, UINT32_MAX), -EBADMSG);
    CHECK_EQ(OPEN_WITH(n_rows, UINT32_MAX), -EBADMSG);
}

/* The number of pages that such a span needs does not fit into 32 bits. */
TEST(a_span_that_needs_more_pages_than_can_be_counted_is_refused) {
    for (uint32_t n_pages = 0; n_pages < 2; n_pages++) {
        UnwindHeader header = {.magic = UNWIND_MAGIC,
                               .version = UNWIND_VERSION,
                               .machine = EM_X86_64,
                               .span = UINT32_MAX - 1 + n_pages,
                               .n_pages = n_pages};

        CHECK_EQ(unwind_image_size(&header), 0);
    }
}

TEST(every_byte_of_an_image_may_be_wrong) {
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    make_image(&image);
    for (size_t i = 0; i < image.size; i++) {
        uint8_t before = image.data[i];

        for (unsigned value = 0; value < 256; value += 51) {
            image.data[i] = (uint8_t)value;
            if (unwind_table_open(buffer_bytes(&image), &table) < 0)
                continue;
            for (unsigned at = 0; at < MADE_TEXT_SIZE; at += 17) {
                UnwindRule rule = unwind_table_find(&table, table.header.base + at);

                CHECK(rule.kind <= UNWIND_END);
                CHECK(rule.base < UNWIND_REGISTERS);
            }
        }
        image.data[i] = before;
    }
}

static uint64_t bias_of(const UnwindTable *table, uint64_t start, uint64_t size, uint64_t offset) {
    uint64_t bias;

    return unwind_table_bias(table, start, size, offset, &bias) == 0 ? bias : UINT64_MAX;
}

TEST(a_mapping_is_matched_with_the_segment_that_it_maps) {
    /* As lld lays files out: addresses are not offsets, and segments share pages. */
    static const UnwindSegment segments[] = {
        {.offset = 0x1230, .size = 0x2000, .address = 0x5230},
        {.offset = 0x3230, .size = 0x800, .address = 0x9230},
    };
    UnwindTable table = {.header = {.n_segments = 2}, .segments = segments};

    CHECK_EQ(bias_of(&table, 0x7f0000005000, 0x2000, 0x1000), 0x7f0000000000);
    CHECK_EQ(bias_of(&table, 0x7f0000005000, 0x3000, 0x1000), 0x7f0000000000);
    /* The second half of a mapping that was split. */
    CHECK_EQ(bias_of(&table, 0x7f0000006000, 0x1000, 0x2000), 0x7f0000000000);
    CHECK_EQ(bias_of(&table, 0x7f000000a000, 0x1000, 0x4000), UINT64_MAX);
    CHECK_EQ(bias_of(&table, 0x7f000000a000, 0x1000, 0), UINT64_MAX);
    CHECK_EQ(bias_of(&table, 0x7f0000009000, 0x1000, 0x3000), 0x7f0000000000);
}

TEST_MAIN()
