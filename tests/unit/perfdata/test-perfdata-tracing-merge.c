/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/tracing/tracing.h"

#include "make-record.h"
#include "test.h"

/* Blobs by hand, merged, and made to disagree. */

static const char exec_format[] = "name: sched_exec\nID: 17\nformat:\n"
                                  "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n";
static const char exec_otherwise[] = "name: sched_exec\nID: 17\nformat:\n"
                                     "\tfield:int pid;\toffset:12;\tsize:4;\tsigned:1;\n";
static const char fork_format[] = "name: sched_fork\nID: 18\nformat:\n"
                                  "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n";
static const char open_format[] = "name: sys_enter_open\nID: 600\nformat:\n"
                                  "\tfield:int nr;\toffset:8;\tsize:4;\tsigned:1;\n";

static void put_format(Make *m, const char *format) {
    u64(m, strlen(format));
    bytes(m, format, strlen(format));
}

static void put_system(Make *m, const char *name, const char *a, const char *b) {
    bytes(m, name, strlen(name) + 1);
    u32(m, b ? 2 : 1);
    put_format(m, a);
    if (b)
        put_format(m, b);
}

static void put_head(Make *m, unsigned n_systems, const char *page) {
    bytes(m, "\x17\x08\x44tracing0.6", 14);
    u8(m, m->swap != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__));
    u8(m, 8);
    u32(m, 4096);
    bytes(m, "header_page", 12);
    put_format(m, page);
    bytes(m, "header_event", 13);
    put_format(m, "");
    u32(m, 1);
    put_format(m, "name: function\nID: 1\nformat:\n");
    u32(m, n_systems);
}

static void put_tail(Make *m, const char *command_lines) {
    u32(m, 0);
    u32(m, 0);
    put_format(m, command_lines);
}

static void make_first(Make *m) {
    put_head(m, 1, "page");
    put_system(m, "sched", exec_format, NULL);
    put_tail(m, "1 init\n");
}

static void make_second(Make *m, const char *exec) {
    put_head(m, 2, "page");
    put_system(m, "syscalls", open_format, NULL);
    put_system(m, "sched", exec, fork_format);
    put_tail(m, "2 kthreadd\n");
}

TEST(the_merged_blob_has_the_tracepoints_of_both_and_the_rest_of_the_first) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(make_done) Make a = {.swap = swap}, b = {.swap = swap}, want = {.swap = swap};
        _cleanup_(buffer_done) Buffer out = {};
        _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;

        make_first(&a);
        make_second(&b, exec_format);
        put_head(&want, 2, "page");
        put_system(&want, "sched", exec_format, fork_format);
        put_system(&want, "syscalls", open_format, NULL);
        put_tail(&want, "1 init\n");
        CHECK_OK(pd_tracing_merge(buffer_bytes(&a.body), buffer_bytes(&b.body), &out));
        CHECK(bytes_equal(buffer_bytes(&out), buffer_bytes(&want.body)));
        CHECK_OK(pd_tracing_new(buffer_bytes(&out), &tracing));
        CHECK_STREQ(pd_tracing_name(tracing, 600), "syscalls:sys_enter_open");
        CHECK_STREQ(pd_tracing_name(tracing, 18), "sched:sched_fork");
    }
}

TEST(a_blob_merged_with_itself_is_unchanged) {
    _cleanup_(make_done) Make a = {};
    _cleanup_(buffer_done) Buffer out = {};

    make_first(&a);
    CHECK_OK(pd_tracing_merge(buffer_bytes(&a.body), buffer_bytes(&a.body), &out));
    CHECK(bytes_equal(buffer_bytes(&out), buffer_bytes(&a.body)));
}

TEST(two_formats_of_one_tracepoint_are_refused) {
    _cleanup_(make_done) Make a = {}, b = {};
    _cleanup_(buffer_done) Buffer out = {};

    make_first(&a);
    make_second(&b, exec_otherwise);
    CHECK_EQ(pd_tracing_merge(buffer_bytes(&a.body), buffer_bytes(&b.body), &out), -EEXIST);
    CHECK_EQ(out.size, 0U);
}

TEST(blobs_of_different_kernels_are_refused) {
    _cleanup_(make_done) Make a = {}, b = {};
    _cleanup_(buffer_done) Buffer out = {};

    make_first(&a);
    put_head(&b, 0, "another page");
    put_tail(&b, "");
    CHECK_EQ(pd_tracing_merge(buffer_bytes(&a.body), buffer_bytes(&b.body), &out), -EEXIST);
}

TEST(a_blob_truncated_before_the_end_of_its_last_format_is_refused) {
    _cleanup_(make_done) Make a = {}, b = {}, tail = {};

    make_first(&a);
    make_second(&b, exec_format);
    put_tail(&tail, "2 kthreadd\n");
    for (size_t n = 0; n < b.body.size - tail.body.size; n++) {
        _cleanup_(buffer_done) Buffer out = {};
        uint8_t *cut = malloc(n + 1);
        int r;

        memcpy(cut, b.body.data, n);
        r = pd_tracing_merge(buffer_bytes(&a.body), (Bytes){.data = cut, .size = n}, &out);
        free(cut);
        CHECK(r == -EBADMSG || r == -EEXIST);
        CHECK_EQ(out.size, 0U);
    }
}

TEST(a_system_with_a_name_that_no_folder_can_have_has_no_tracepoints) {
    _cleanup_(make_done) Make a = {};
    _cleanup_(pd_tracing_freep) PdTracing *tracing = NULL;
    char name[512] = "";

    put_head(&a, 2, "page");
    memset(name, 'x', 255);
    put_system(&a, name, exec_format, NULL);
    memset(name, 'x', 256);
    put_system(&a, name, fork_format, NULL);
    put_tail(&a, "");
    CHECK_OK(pd_tracing_new(buffer_bytes(&a.body), &tracing));
    CHECK(pd_tracing_name(tracing, 17));
    CHECK(!pd_tracing_name(tracing, 18));
}

TEST_MAIN()
