/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reduce/code-map.h"

#include "reduce/reduce-limit.h"
#include "test.h"
#include "util/macro.h"
#include "util/text.h"

typedef struct Text {
    Bytes bytes;
    size_t at_most; /* bytes in one read; 0: no limit */
    uint64_t hole;  /* zeros behind it */
} Text;

static int64_t read_text(void *userdata, uint64_t offset, void *to, size_t n) {
    const Text *text = userdata;
    uint64_t size = text->bytes.size + text->hole;
    size_t i;

    n = text->at_most > 0 ? MIN(n, text->at_most) : n;
    n = offset < size ? (size_t)MIN((uint64_t)n, size - offset) : 0;
    for (i = 0; i < n; i++)
        ((uint8_t *)to)[i] = offset + i < text->bytes.size ? text->bytes.data[offset + i] : 0;
    return (int64_t)n;
}

static int map_of(const Text *text, uint64_t limit, char *ret, size_t size) {
    ReduceSource source = {.read = read_text, .userdata = (void *)text};
    _cleanup_(buffer_done) Buffer out = {};
    int r = code_map_read(&source, limit, &out);

    snprintf(ret, size, "%.*s", (int)out.size, out.size > 0 ? (const char *)out.data : "");
    return r;
}

static Bytes bytes_of(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

TEST(only_lines_that_parse_are_kept_however_they_are_read) {
    static const char file[] = "7f00 10 Interpreter\n"
                               "0x7F20 0x8 LazyCompile:~f /a b.js:1\n"
                               "nonsense\n"
                               "7f30  8 two spaces\n"
                               "7f40 0 empty\n"
                               "0 8 nowhere\n"
                               "ffffffffffffffff 8 wraps\n"
                               "11111111111111111 8 too many digits\n"
                               "7f50 8 \n"
                               "7f60 8 bell\a\n"
                               "7f70 8\n"
                               "7f80 8 \xff\xfe bytes\n"
                               "7f90 8 not finished";
    char got[512];

    for (size_t n = 0; n < 40; n++) {
        Text text = {.bytes = bytes_of(file), .at_most = n};

        CHECK_OK(map_of(&text, 4096, got, sizeof(got)));
        CHECK_STREQ(got, "7f00 10 Interpreter\n7f20 8 LazyCompile:~f /a b.js:1\n"
                         "7f80 8 \xff\xfe bytes\n");
    }
}

TEST(a_line_longer_than_any_name_is_skipped) {
    _cleanup_(buffer_done) Buffer file = {};
    Text text;
    char got[64];

    buffer_append(&file, "10 1 a\n20 1 ", 12);
    for (unsigned i = 0; i < 200000; i++)
        buffer_append(&file, "x", 1);
    buffer_append(&file, "\n30 1 b\n", 8);
    text = (Text){.bytes = buffer_bytes(&file)};
    CHECK_OK(map_of(&text, 4096, got, sizeof(got)));
    CHECK_STREQ(got, "10 1 a\n30 1 b\n");
}

TEST(garbage_is_refused_and_so_is_a_file_without_end) {
    Text garbage = {.bytes = bytes_of("\x7f\x45\x4c\x46 no lines at all")},
         endless = {.bytes = bytes_of("10 1 a\n"), .hole = 1ULL << 30},
         one = {.bytes = bytes_of("10 1 a\n20 1 longer\n")};
    char got[64];

    CHECK_EQ(map_of(&garbage, 4096, got, sizeof(got)), -ENODATA);
    CHECK_EQ(map_of(&endless, 4096, got, sizeof(got)), -E2BIG);
    CHECK_EQ(map_of(&one, 10, got, sizeof(got)), -E2BIG);
    CHECK_STREQ(got, "");
}

TEST(of_more_lines_than_find_room_the_last_ones_are_kept) {
    _cleanup_(buffer_done) Buffer file = {}, out = {};
    ReduceSource source;
    char got[64];
    Text text;

    for (unsigned i = 1; i <= 9; i++)
        text_printf(&file, "%u0 1 f%u\n", i, i);
    text = (Text){.bytes = buffer_bytes(&file)};
    CHECK_OK(map_of(&text, 40, got, sizeof(got)));
    CHECK_STREQ(got, "70 1 f7\n80 1 f8\n90 1 f9\n");
    for (unsigned i = 0; i < REDUCE_LINES_MAX; i++)
        buffer_append(&file, "1 1 x\n", 6);
    buffer_append(&file, "2 1 last\n", 9);
    text.bytes = buffer_bytes(&file);
    source = (ReduceSource){.read = read_text, .userdata = &text};
    CHECK_OK(code_map_read(&source, 64 << 20, &out));
    CHECK(out.size > REDUCE_LINES_MAX / 2 * 6 && out.size < REDUCE_LINES_MAX * 6);
    CHECK(memcmp(out.data + out.size - 9, "2 1 last\n", 9) == 0);
}

static void put_load(Buffer *b, uint64_t address, uint64_t size, const char *name, bool swap) {
    buffer_u32(b, 0, swap);
    buffer_u32(b, (uint32_t)(16 + 40 + strlen(name) + 1 + size), swap);
    buffer_u64(b, 1, swap);
    buffer_u32(b, 7, swap);
    buffer_u32(b, 7, swap);
    buffer_u64(b, address, swap);
    buffer_u64(b, address, swap);
    buffer_u64(b, size, swap);
    buffer_u64(b, 0, swap);
    buffer_append(b, name, strlen(name) + 1);
    for (uint64_t i = 0; i < size; i++)
        buffer_append(b, "\xcc", 1);
}

static void put_jitdump(Buffer *b, bool swap) {
    buffer_u32(b, 0x4a695444, swap);
    buffer_u32(b, 1, swap);
    buffer_u32(b, 40, swap);
    buffer_zero(b, 28);
    put_load(b, 0x7f00, 32, "first", swap);
    buffer_u32(b, 2, swap); /* JIT_CODE_DEBUG_INFO */
    buffer_u32(b, 24, swap);
    buffer_zero(b, 16);
    put_load(b, 0x8f00, 5000, "second", swap);
}

TEST(the_loads_of_a_jitdump_become_lines) {
    for (unsigned i = 0; i < 2; i++) {
        _cleanup_(buffer_done) Buffer file = {};
        Text text;
        char got[64];

        put_jitdump(&file, i);
        text = (Text){.bytes = buffer_bytes(&file)};
        CHECK_OK(map_of(&text, 4096, got, sizeof(got)));
        CHECK_STREQ(got, "7f00 20 first\n8f00 1388 second\n");
        /* The second is still being written. */
        text.bytes.size -= 5001;
        CHECK_OK(map_of(&text, 4096, got, sizeof(got)));
        CHECK_STREQ(got, "7f00 20 first\n");
    }
}

TEST(records_of_a_jitdump_without_a_size_end_it) {
    _cleanup_(buffer_done) Buffer file = {};
    Text text;
    char got[64];

    put_jitdump(&file, false);
    store_u32(file.data + 40 + 4, 0, false);
    text = (Text){.bytes = buffer_bytes(&file)};
    CHECK_EQ(map_of(&text, 4096, got, sizeof(got)), -ENODATA);
    store_u32(file.data + 40 + 4, UINT32_MAX, false);
    CHECK_OK(map_of(&text, 4096, got, sizeof(got)));
    CHECK_STREQ(got, "7f00 20 first\n");
}

TEST_MAIN()
