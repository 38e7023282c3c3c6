/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fields.h"
#include "util/text.h"

#include "test.h"

/* Numbers, escapes and the two outputs of Fields. */

static const char *escaped(const char *s, size_t n) {
    static Buffer b;

    buffer_clear(&b);
    text_escape(&b, (Bytes){.data = (const uint8_t *)s, .size = n});
    text_putc(&b, '\0');
    return (const char *)b.data;
}

TEST(numbers_print_as_printf_prints_them) {
    static const uint64_t values[] = {
        0, 9, 10, 99, 100, 12345, UINT32_MAX, 0xabcdef0123456789, INT64_MAX, UINT64_MAX};
    _cleanup_(buffer_done) Buffer b = {};
    char expect[64];

    for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
        buffer_clear(&b);
        text_u64(&b, values[i]);
        text_putc(&b, ' ');
        text_hex(&b, values[i]);
        text_putc(&b, ' ');
        text_i64(&b, (int64_t)values[i]);
        text_putc(&b, '\0');
        snprintf(expect, sizeof(expect), "%" PRIu64 " 0x%" PRIx64 " %" PRIi64, values[i], values[i],
                 (int64_t)values[i]);
        CHECK_STREQ((char *)b.data, expect);
    }
}

TEST(powers_of_ten_and_of_two_print_all_digits) {
    _cleanup_(buffer_done) Buffer b = {};
    char expect[64];

    for (unsigned i = 0; i < 84; i++) {
        uint64_t v = i < 64 ? 1ULL << i : 1;

        for (unsigned k = 64; k < i; k++)
            v *= 10;
        for (uint64_t w = v - 1; w != v + 2; w++) {
            buffer_clear(&b);
            text_u64(&b, w);
            text_putc(&b, ' ');
            text_hex(&b, w);
            text_putc(&b, '\0');
            snprintf(expect, sizeof(expect), "%" PRIu64 " 0x%" PRIx64, w, w);
            CHECK_STREQ((char *)b.data, expect);
        }
    }
}

TEST(time_has_nine_decimals) {
    _cleanup_(buffer_done) Buffer b = {};

    text_time_ns(&b, 3772000000563);
    text_putc(&b, '\0');
    CHECK_STREQ((char *)b.data, "3772.000000563");
}

TEST(every_unsafe_byte_is_escaped_at_any_position) {
    for (unsigned size = 1; size <= 20; size++)
        for (unsigned at = 0; at < size; at++)
            for (unsigned c = 0; c < 256; c++) {
                char text[20], expect[64];
                int n;

                memset(text, 'x', sizeof(text));
                text[at] = (char)c;
                n = snprintf(expect, sizeof(expect), "%.*s", (int)at, "xxxxxxxxxxxxxxxxxxxx");
                n += snprintf(expect + n, sizeof(expect) - (size_t)n,
                              c >= 0x20 && c < 0x7f && c != '\\' ? "%c" : "\\x%02x", c);
                snprintf(expect + n, sizeof(expect) - (size_t)n, "%.*s", (int)(size - at - 1),
                         "xxxxxxxxxxxxxxxxxxxx");
                CHECK_STREQ(escaped(text, size), expect);
            }
}

TEST(hostile_bytes_are_escaped) {
    CHECK_STREQ(escaped("\xff\x1b[2J", 5), "\\xff\\x1b[2J");
    CHECK_STREQ(escaped("a\0b", 3), "a\\x00b");
    CHECK_STREQ(escaped("back\\slash", 10), "back\\x5cslash");
    CHECK_STREQ(escaped("gr\xc3\xbc\xc3\x9f", 6), "gr\xc3\xbc\xc3\x9f");
    CHECK_STREQ(escaped("\xe2\x80\xae", 3), "\\xe2\\x80\\xae");
    CHECK_STREQ(escaped("\xc2\x9b", 2), "\\xc2\\x9b");
    CHECK_STREQ(escaped("\xef\xbf\xbf", 3), "\\xef\\xbf\\xbf");
    CHECK_STREQ(escaped("\xef\xbf\xbe", 3), "\\xef\\xbf\\xbe");
    CHECK_STREQ(escaped("\xef\xbf\xbd", 3), "\xef\xbf\xbd");
    CHECK_STREQ(escaped("\xed\xa0\x80", 3), "\\xed\\xa0\\x80");
    CHECK_STREQ(escaped("\xc3", 1), "\\xc3");
    CHECK_STREQ(escaped(NULL, 0), "");
}

TEST(escaped_text_is_unchanged_by_a_second_escape) {
    static const char text[] = "a\\xff\x1b[2J \xc2\x9b\"";
    _cleanup_(buffer_done) Buffer b = {};

    text_escape_again(&b, (Bytes){.data = (const uint8_t *)text, .size = sizeof(text) - 1});
    text_putc(&b, '\0');
    CHECK_STREQ((char *)b.data, "a\\xff\\x1b[2J \\xc2\\x9b\"");
}

TEST(unescape_restores_escapes_and_keeps_other_text) {
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"\\xff\\x1b[2J", "\xff\x1b[2J"},
        {"back\\x5cslash", "back\\slash"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\\xFE", "\xfe"},
        /* No escapes. */
        {"a\\b\\", "a\\b\\"},
        {"\\x", "\\x"},
        {"\\xf", "\\xf"},
        {"\\xfg", "\\xfg"},
        {"\\x00", "\\x00"},
        {"", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[32];

        text_unescape(rows[i].from, text);
        CHECK_STREQ(text, rows[i].to);
    }
}

TEST(milliseconds_are_exact) {
    static const uint64_t times[] = {0, 1, 1000000, 1500000, 999999, 10203040506070};
    _cleanup_(buffer_done) Buffer b = {};
    Fields f = fields_to(&b, FIELDS_JSON);

    fields_begin_array(&f, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++)
        fields_ms_of_ns(&f, NULL, times[i]);
    fields_end_array(&f);
    text_putc(&b, '\0');
    CHECK_STREQ((char *)b.data, "[0,0.000001,1,1.5,0.999999,10203040.50607]");
}

TEST(one_description_makes_text_and_json) {
    _cleanup_(buffer_done) Buffer b = {};
    const FieldsFormat formats[] = {FIELDS_TEXT, FIELDS_JSON};

    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        Fields f = fields_to(&b, formats[i]);

        fields_begin_object(&f, NULL);
        fields_u64(&f, "pid", 12);
        fields_str(&f, "comm", "a\"b");
        fields_begin_array(&f, "chain");
        fields_hex(&f, NULL, 1);
        fields_hex(&f, NULL, 2);
        fields_end_array(&f);
        fields_hex_array(&f, "array", (const uint8_t *)(const uint64_t[]){0, 0xffffffff81000abc}, 2,
                         false);
        fields_hex_array(&f, "none", NULL, 0, false);
        fields_begin_object(&f, "empty");
        fields_end_object(&f);
        fields_bool(&f, "last", true);
        fields_end_object(&f);
        text_putc(&b, '\n');
    }
    text_putc(&b, '\0');
    CHECK_STREQ((char *)b.data, "pid 12 comm a\"b chain [0x1 0x2] array [0x0 0xffffffff81000abc] "
                                "none [] empty {} last yes\n"
                                "{\"pid\":12,\"comm\":\"a\\\"b\",\"chain\":[\"0x1\",\"0x2\"],"
                                "\"array\":[\"0x0\",\"0xffffffff81000abc\"],\"none\":[],"
                                "\"empty\":{},\"last\":true}\n");
}

TEST_MAIN()
