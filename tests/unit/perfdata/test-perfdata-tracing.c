/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/tracing.h"

#include "util/text.h"

#include "make-record.h"
#include "test.h"

/* Tracing data made by hand, in both byte orders, whole, cut and made to lie. */

static const char open_format[] =
    "name: sys_enter_open\n"
    "ID: 600\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:int nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:const char * filename;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:u16 mode;\toffset:24;\tsize:2;\tsigned:0;\n"
    "\tfield:s8 small;\toffset:26;\tsize:1;\tsigned:1;\n"
    "\n"
    "print fmt: \"field:%d\", REC->nr\n"
    "\tfield:int never;\toffset:0;\tsize:4;\tsigned:1;\n";

static const char exec_format[] =
    "name: exec\n"
    "ID: 17\n"
    "format:\n"
    "\tfield:__data_loc char[] filename;\toffset:0;\tsize:4;\tsigned:0;\n"
    "\tfield:char comm[8];\toffset:4;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long args[2];\toffset:16;\tsize:16;\tsigned:0;\n"
    "\tfield:__rel_loc u32[] list;\toffset:32;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned char mac[4];\toffset:36;\tsize:4;\tsigned:0;\n"
    "\tfield:struct what it;\toffset:40;\tsize:3;\tsigned:0;\n"
    "\tfield:__data_loc unsigned long[] longs;\toffset:44;\tsize:4;\tsigned:0;\n";

static const char *const bad_formats[] = {
    "",
    "name: no_id\nformat:\n",
    "ID: 9\nformat:\n",
    "name: bad_id\nID: x\n",
    "name: bad_id\nID: 99999999999\n",
    "name: twice\nname: twice\nID: 9\n",
    "name: no_size\nID: 9\n\tfield:int a;\toffset:0;\tsigned:1;\n",
    "name: no_name\nID: 9\n\tfield:;\toffset:0;\tsize:4;\n",
    "name: no_type\nID: 9\n\tfield:a;\toffset:0;\tsize:4;\n",
    "name: bad_name\nID: 9\n\tfield:int a-;\toffset:0;\tsize:4;\n",
    "name: bad_array\nID: 9\n\tfield:int a];\toffset:0;\tsize:4;\n",
    "name: only_array\nID: 9\n\tfield:[];\toffset:0;\tsize:4;\n",
    "name: bad_loc\nID: 9\n\tfield:__data_loc char[] a;\toffset:0;\tsize:8;\n",
    "name: negative\nID: 9\n\tfield:int a;\toffset:-1;\tsize:4;\n",
};

static void put_format(Make *m, const char *format) {
    u64(m, strlen(format));
    bytes(m, format, strlen(format));
}

/* Up to the size of the header page. */
static void make_head(Make *m) {
    bytes(m, "\x17\x08\x44tracing0.6", 14);
    u8(m, m->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__));
    u8(m, 8);
    u32(m, 4096);
    bytes(m, "header_page", 12);
}

static void make_blob(Make *m) {
    make_head(m);
    u64(m, 5);
    bytes(m, "page!", 5);
    bytes(m, "header_event", 13);
    u64(m, 0);
    u32(m, 1);
    put_format(m,
               "name: function\nID: 1\nformat:\n\tfield:long ip;\toffset:0;\tsize:8;\tsigned:1;\n");
    u32(m, 2);
    bytes(m, "syscalls", 9);
    u32(m, 1 + ARRAY_SIZE(bad_formats));
    for (size_t i = 0; i < ARRAY_SIZE(bad_formats); i++)
        put_format(m, bad_formats[i]);
    put_format(m, open_format);
    bytes(m, "sched", 6);
    u32(m, 1);
    put_format(m, exec_format);
}

static void make_tail(Make *m) {
    u32(m, 0);
    u32(m, 0);
    u64(m, 0);
}

static void make_open(Make *m) {
    u64(m, 0);
    u32(m, (uint32_t)-2);
    u32(m, 0);
    u64(m, 0x7fff0000);
    u16(m, 0644);
    u8(m, 0x80);
    u8(m, 0);
}

static void make_exec(Make *m) {
    u32(m, 48 | 8 << 16);
    bytes(m, "\xff\"sh\0\0\0\0\0\0\0\0", 12);
    u64(m, 1);
    u64(m, UINT64_MAX);
    u32(m, 20 | 8 << 16);
    bytes(m, "\x01\x02\x03\x04", 4);
    bytes(m, "abc", 3);
    u8(m, 0);
    u32(m, 64 | 16 << 16);
    text(m, "/bin/sh", 8);
    u32(m, 70000);
    u32(m, 2);
    u64(m, 5);
    u64(m, 6);
}

static const char *described(const PdTracing *t, uint64_t id, const Make *m, size_t size,
                             FieldsFormat format) {
    static Buffer b;
    /* An exact copy, so that the first byte behind is another's. */
    _cleanup_free_ uint8_t *copy = malloc(size ? size : 1);
    Fields f;

    assert(copy);
    if (size > 0)
        memcpy(copy, m->body.data, size);
    buffer_clear(&b);
    f = fields_to(&b, format);
    fields_begin_object(&f, NULL);
    pd_tracing_describe(t, id, (Bytes){.data = copy, .size = size}, m->swap, &f);
    fields_end_object(&f);
    text_putc(&b, '\0');
    assert(buffer_error(&b) == 0);
    return (const char *)b.data;
}

TEST(formats_are_named_and_malformed_ones_are_skipped) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make m = {.swap = swap};
        _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

        make_blob(&m);
        make_tail(&m);
        CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
        CHECK_STREQ(pd_tracing_name(t, 1), "ftrace:function");
        CHECK_STREQ(pd_tracing_name(t, 17), "sched:exec");
        CHECK_STREQ(pd_tracing_name(t, 600), "syscalls:sys_enter_open");
        CHECK(!pd_tracing_name(t, 9));
        CHECK(!pd_tracing_name(t, 0));
        CHECK(!pd_tracing_name(t, UINT64_MAX));
    }
}

TEST(fields_have_their_sign_width_and_byte_order) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make m = {.swap = swap}, raw = {.swap = swap};
        _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

        make_blob(&m);
        CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
        make_open(&raw);
        CHECK_STREQ(described(t, 600, &raw, raw.body.size, FIELDS_TEXT),
                    "nr -2 filename 0x7fff0000 mode 420 small -128");
        CHECK_STREQ(described(t, 601, &raw, raw.body.size, FIELDS_TEXT), "");
    }
}

TEST(strings_and_arrays_are_found_by_their_offsets) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make m = {.swap = swap}, raw = {.swap = swap};
        _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

        make_blob(&m);
        CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
        make_exec(&raw);
        CHECK_STREQ(described(t, 17, &raw, raw.body.size, FIELDS_JSON),
                    "{\"filename\":\"/bin/sh\",\"comm\":\"\\\\xff\\\"sh\","
                    "\"args\":[1,18446744073709551615],\"list\":[70000,2],"
                    "\"mac\":\"01020304\",\"it\":\"616263\",\"longs\":[5,6]}");
    }
}

TEST(truncated_raw_data_gives_null_for_missing_fields) {
    _cleanup_(make_done) Make m = {}, raw = {};
    _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

    make_blob(&m);
    CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
    make_exec(&raw);
    for (size_t n = 0; n < raw.body.size; n++)
        CHECK(strstr(described(t, 17, &raw, n, FIELDS_JSON), "null"));
    CHECK_STREQ(described(t, 600, &raw, 10, FIELDS_TEXT), "nr - filename - mode - small -");
}

TEST(overlapping_fields_are_read_within_bounds) {
    static const char format[] = "name: x\nID: 1\n"
                                 "\tfield:char a[8];\toffset:0;\tsize:8;\n"
                                 "\tfield:char b[8];\toffset:0;\tsize:8;\n"
                                 "\tfield:char c[8];\toffset:4;\tsize:8;\n";
    _cleanup_(make_done) Make m = {}, raw = {};
    _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

    make_head(&m);
    u64(&m, 0);
    bytes(&m, "header_event", 13);
    u64(&m, 0);
    u32(&m, 1);
    put_format(&m, format);
    CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
    bytes(&raw, "abcdefghijkl", 12);
    CHECK_STREQ(described(t, 1, &raw, 12, FIELDS_TEXT), "a abcdefgh b - c -");
}

TEST(a_format_with_too_many_fields_is_refused) {
    _cleanup_(make_done) Make m = {}, format = {};
    _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

    make_head(&m);
    u64(&m, 0);
    bytes(&m, "header_event", 13);
    u64(&m, 0);
    u32(&m, 1);
    text_puts(&format.body, "name: x\nID: 1\n");
    for (unsigned i = 0; i < 257; i++)
        text_puts(&format.body, "\tfield:int a;\toffset:0;\tsize:4;\n");
    u64(&m, format.body.size);
    bytes(&m, (const char *)format.body.data, format.body.size);
    CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
    CHECK(!pd_tracing_name(t, 1));
}

TEST(a_truncated_blob_keeps_its_whole_formats) {
    _cleanup_(make_done) Make m = {};
    unsigned named = 0;

    make_blob(&m);
    for (size_t n = 0; n <= m.body.size; n++) {
        _cleanup_(pd_tracing_freep) PdTracing *t = NULL;
        _cleanup_free_ uint8_t *copy = malloc(n ? n : 1);
        int r;

        CHECK(copy);
        memcpy(copy, m.body.data, n);
        r = pd_tracing_new((Bytes){.data = copy, .size = n}, &t);
        CHECK(r == 0 || r == -EBADMSG);
        CHECK((r == 0) == (t != NULL));
        named += t && pd_tracing_name(t, 600);
    }
    CHECK_EQ(named, (unsigned)(6 + 4 + 8 + strlen(exec_format) + 1));
}

TEST(wrong_sizes_are_bounded_by_the_blob) {
    static const uint64_t sizes[] = {1, 1ULL << 32, 1ULL << 61, 1ULL << 63, UINT64_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_(make_done) Make m = {};
        _cleanup_(pd_tracing_freep) PdTracing *t = NULL;

        make_head(&m);
        u64(&m, sizes[i]);
        CHECK_EQ(pd_tracing_new(buffer_bytes(&m.body), &t), -EBADMSG);
        store_u64(m.body.data + m.body.size - 8, 0, false);
        bytes(&m, "header_event", 13);
        u64(&m, 0);
        u32(&m, UINT32_MAX);
        u64(&m, sizes[i]);
        CHECK_OK(pd_tracing_new(buffer_bytes(&m.body), &t));
        CHECK(!pd_tracing_name(t, 1));
    }
}

TEST(other_bytes_are_refused_as_tracing_data) {
    PdTracing *t = NULL;

    CHECK_EQ(pd_tracing_new((Bytes){}, &t), -EBADMSG);
    CHECK_EQ(pd_tracing_new((Bytes){(const uint8_t *)"PERFILE2", 8}, &t), -EBADMSG);
    CHECK_EQ(pd_tracing_new((Bytes){(const uint8_t *)"\x17\x08\x44trackers", 11}, &t), -EBADMSG);
    CHECK(!t);
}

TEST_MAIN()
