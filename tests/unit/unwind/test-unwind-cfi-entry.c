/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind/compile/cfi-entry.h"

#include "make-elf.h"
#include "test.h"
#include "unwind/compile/unwind-limit.h"

/* Entries of each form, and those that are made to cost time, memory or sense. */

static UnwindRule find(MadeElf *elf, uint64_t address) {
    _cleanup_(buffer_done) Buffer image = {};
    UnwindTable table;

    if (made_compile(elf, &image, &table) < 0)
        return (UnwindRule){.kind = UINT8_MAX};
    return unwind_table_find(&table, address);
}

/* A CIE of the given bytes, then a function that has only what the CIE says. */
static UnwindRule rule_by_cie(const uint8_t *bytes, size_t n, bool is_debug, bool has_size) {
    MadeElf elf = {};
    Buffer *b = is_debug ? &elf.debug_frame : &elf.eh_frame;
    size_t cie = made_begin(b, is_debug ? UINT32_MAX : 0);

    made_bytes(b, bytes, n);
    made_end(b, cie);
    made_fde(b, is_debug, cie, MADE_TEXT, 0x100, (const uint8_t[]){0}, has_size);
    return find(&elf, MADE_TEXT);
}

#define BY_CIE(is_debug, has_size, ...)                                                            \
    rule_by_cie((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}),            \
                (is_debug), (has_size))                                                            \
        .kind
#define RULES 0x0c, 7, 8, 0x90, 1

TEST(each_version_of_a_cie_is_read) {
    CHECK_EQ(BY_CIE(false, false, 1, 0, 1, 0x78, 16, RULES), UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(true, false, 3, 0, 1, 0x78, 0x90, 0, RULES), UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(true, false, 4, 0, 8, 0, 1, 0x78, 16, RULES), UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(true, false, 4, 0, 4, 0, 1, 0x78, 16, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(true, false, 4, 0, 8, 4, 1, 0x78, 16, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, false, 2, 0, 1, 0x78, 16, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, false, 1, 0, 1, 0x78, 15, RULES),
             UINT8_MAX); /* another return address */
}

TEST(each_letter_of_an_augmentation_is_read) {
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 0, 1, 0x78, 16, 0, RULES), UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, RULES), UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 0, 0, 0, 0, 0x1b,
                    0x00, RULES),
             UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 'B', 'G', 0, 1, 0x78, 16, 1, 0x00, RULES),
             UNWIND_OFFSET);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', '?', 0, 1, 0x78, 16, 1, 0x00, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, true, 1, 'e', 'h', 0, 1, 0x78, 16, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 0, 1, 0x78, 16, 0x7f, 0x00, RULES), UINT8_MAX);
    /* Encodings of addresses that no program has: relative to the data, indirect, unknown. */
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x30, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x80, RULES), UINT8_MAX);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x07, RULES), UINT8_MAX);
}

TEST(a_signal_frame_is_recognised_by_its_letter_and_its_cfa) {
#define CONTEXT(low, high) 0x0f, 4, 0x77, (low), (high), 0x06, 0x90, 1
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'S', 0, 1, 0x78, 16, 0, CONTEXT(0xa0, 1)), UNWIND_SIGNAL);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 'S', 0, 1, 0x78, 16, 0, CONTEXT(0xa8, 1)), UNWIND_DEREF);
    CHECK_EQ(BY_CIE(false, true, 1, 'z', 0, 1, 0x78, 16, 0, CONTEXT(0xa0, 1)), UNWIND_DEREF);
}

TEST(entries_with_64_bit_lengths_are_read) {
    MadeElf elf = {};
    Buffer *b = &elf.debug_frame;
    size_t at;

    MADE(b, 0xff, 0xff, 0xff, 0xff);
    buffer_u64(b, 8 + 10, false);
    buffer_u64(b, UINT64_MAX, false);
    MADE(b, 1, 0, 1, 0x78, 16, RULES);
    MADE(b, 0xff, 0xff, 0xff, 0xff);
    at = b->size;
    buffer_u64(b, 0, false);
    buffer_u64(b, 0, false); /* the CIE */
    buffer_u64(b, MADE_TEXT, false);
    buffer_u64(b, 0x10, false);
    store_u64(b->data + at, b->size - at - 8, false);
    CHECK_EQ(find(&elf, MADE_TEXT).kind, UNWIND_OFFSET);
}

TEST(of_two_overlapping_functions_the_first_counts) {
    for (unsigned i = 0; i < 3; i++) {
        static const uint64_t addresses[] = {MADE_TEXT, MADE_TEXT + 0x80, MADE_TEXT + 0x100};
        static const int offsets[] = {16, 16, 32};
        MadeElf elf = {};
        size_t cie = made_cie(&elf.eh_frame, false);

        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT + 0x100, 0x10, 0x0e, 32);
        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT + 0x80, 0x10, 0x0e, 24);
        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT, 0x100, 0x0e, 16);
        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT, 0x100, 0x0e, 40);
        CHECK_EQ(find(&elf, addresses[i]).offset, offsets[i]);
    }
}

TEST(eh_frame_wins_over_debug_frame) {
    static const uint8_t other[] = {0x0e, 64};

    for (unsigned i = 0; i < 2; i++) {
        MadeElf elf = {};
        size_t cie = made_cie(&elf.eh_frame, false), debug_cie = made_cie(&elf.debug_frame, true);

        MADE_FDE(&elf.eh_frame, cie, MADE_TEXT + 0x40, 0x40, 0x0e, 16);
        made_fde(&elf.debug_frame, true, debug_cie, MADE_TEXT, 0x100, other, sizeof(other));
        made_fde(&elf.debug_frame, true, debug_cie, MADE_TEXT + 0x200, 0x100, other, sizeof(other));
        CHECK_EQ(find(&elf, MADE_TEXT + (i ? 0x240 : 0x41)).offset, i ? 64 : 16);
    }
}

TEST(functions_outside_of_executable_segments_are_dropped) {
    static const struct {
        uint64_t begin, size;
    } odd[] = {
        {0, 0x100},
        {MADE_TEXT - 1, 0x10},
        {MADE_TEXT + MADE_TEXT_SIZE, 1},
        {MADE_TEXT, MADE_TEXT_SIZE + 1},
        {MADE_TEXT, 0},
        {MADE_TEXT, UINT64_MAX},
        {UINT64_MAX - 1, 4},
    };

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        MadeElf elf = {};
        size_t cie = made_cie(&elf.eh_frame, false);

        made_fde(&elf.eh_frame, false, cie, odd[i].begin, odd[i].size, NULL, 0);
        made_fde(&elf.eh_frame, false, cie, MADE_TEXT + 0x800, 0x10, NULL, 0);
        CHECK_EQ(find(&elf, MADE_TEXT + 0x800).kind, UNWIND_OFFSET);
    }
}

TEST(locations_never_leave_their_function) {
    MadeElf elf = {};
    size_t cie = made_begin(&elf.eh_frame, 0);

    /* Advances are multiplied by 2^63, then a plain one. */
    MADE(&elf.eh_frame, 1, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0x78, 16,
         RULES);
    made_end(&elf.eh_frame, cie);
    MADE_FDE(&elf.eh_frame, cie, MADE_TEXT, 0x10, 0x42, 0x0e, 16);
    CHECK_EQ(find(&elf, MADE_TEXT).offset, 0); /* the sum would wrap: nothing is known */
    elf = (MadeElf){};
    cie = made_cie(&elf.eh_frame, false);
    MADE_FDE(&elf.eh_frame, cie, MADE_TEXT, 0x10, 0x02, 0xf0, 0x0e, 16);
    MADE_FDE(&elf.eh_frame, cie, MADE_TEXT + 0x80, 0x10, 0x0e, 32);
    CHECK_EQ(find(&elf, MADE_TEXT + 0x8f).offset, 32);
}

TEST(states_are_remembered_up_to_a_limit) {
    for (unsigned n = UNWIND_REMEMBERED_MAX; n <= UNWIND_REMEMBERED_MAX + 1; n++) {
        uint8_t instructions[2 * UNWIND_REMEMBERED_MAX] = {};
        MadeElf elf = {};

        memset(instructions, 0x0a, n);
        instructions[n] = 0x41;
        made_fde(&elf.eh_frame, false, made_cie(&elf.eh_frame, false), MADE_TEXT, 0x10,
                 instructions, sizeof(instructions));
        CHECK_EQ(find(&elf, MADE_TEXT + 2).kind,
                 n > UNWIND_REMEMBERED_MAX ? UNWIND_NONE : UNWIND_OFFSET);
    }
}

/* Were CIEs looked for one by one, this would take hours. */
TEST(many_cies_do_not_slow_down_the_compilation) {
    enum { CIES = UNWIND_CIES_MAX - 1 };
    MadeElf elf = {.text_size = CIES * 16};
    size_t first = 0;

    for (unsigned i = 0; i < CIES; i++)
        first = made_cie(&elf.eh_frame, false);
    for (unsigned i = 0; i < CIES; i++)
        made_fde(&elf.eh_frame, false, (first / (CIES - 1)) * (CIES - 1 - i), MADE_TEXT + i * 16ULL,
                 16, (const uint8_t[]){0x0e, (uint8_t)(16 + 8 * (i % 8))}, 2);
    CHECK_EQ(find(&elf, MADE_TEXT + (CIES - 1) * 16ULL).offset, 16 + 8 * ((CIES - 1) % 8));
    elf = (MadeElf){};
    for (unsigned i = 0; i <= UNWIND_CIES_MAX; i++)
        made_cie(&elf.eh_frame, false);
    CHECK_EQ(find(&elf, MADE_TEXT).kind, UINT8_MAX);
}

TEST(table_is_never_larger_than_its_limit) {
    enum { SIZE = 4 << 20 };
    _cleanup_(buffer_done) Buffer image = {};
    static uint8_t instructions[SIZE];
    MadeElf elf = {.text_size = SIZE};
    UnwindTable table;
    size_t size;
    int r;

    /* A new row every two bytes, as dense as rows can be. */
    for (size_t i = 0; i + 3 < SIZE; i += 4)
        memcpy(instructions + i, (const uint8_t[]){0x41, 0x83, (uint8_t)(i / 4 % 64 + 1), 0x41}, 4);
    made_fde(&elf.eh_frame, false, made_cie(&elf.eh_frame, false), MADE_TEXT, SIZE, instructions,
             SIZE);
    size = elf.eh_frame.size;
    r = made_compile(&elf, &image, &table);
    CHECK(r == 0 || r == -E2BIG);
    CHECK(image.size <= UNWIND_TABLE_FREE + UNWIND_TABLE_RATIO * size);
}

TEST_MAIN()
