/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/mapping.h"

#include <sys/mman.h>

#include "test.h"
#include "util/macro.h"

/* The lines of /proc/PID/maps, among them those that somebody made up. */

static char line[8192];

static bool parse(const char *text, PdMmap *ret) {
    size_t n = strlen(text);

    memcpy(line, text, n + 1);
    return mapping_parse(line, n, false, ret);
}

static bool is_named(const PdMmap *m, const char *name) {
    return bytes_equal_str(m->filename, name);
}

TEST(an_executable_mapping_is_parsed_completely) {
    PdMmap m;

    CHECK(parse("7feb74e44000-7feb74f9a000 r-xp 00026000 fe:1f 326269                     "
                "/usr/lib/libc.so.6",
                &m));
    CHECK_EQ(m.start, 0x7feb74e44000U);
    CHECK_EQ(m.length, 0x156000U);
    CHECK_EQ(m.pgoff, 0x26000U);
    CHECK_EQ(m.major, 0xfeU);
    CHECK_EQ(m.minor, 0x1fU);
    CHECK_EQ(m.inode, 326269U);
    CHECK_EQ(m.prot, (uint32_t)(PROT_READ | PROT_EXEC));
    CHECK_EQ(m.flags, (uint32_t)MAP_PRIVATE);
    CHECK(is_named(&m, "/usr/lib/libc.so.6"));
}

TEST(a_mapping_that_is_not_executable_is_skipped) {
    PdMmap m;

    CHECK(!parse("1000-2000 rw-p 00000000 fe:00 12 /bin/sh", &m));
    CHECK(!parse("1000-2000 r--s 00000000 fe:00 12 /bin/sh", &m));
}

TEST(only_newlines_of_a_name_are_unescaped) {
    PdMmap m;

    CHECK(parse("1000-2000 --xs 0 0:1 5 /memfd:a b\\012c\\013\\\\012 (deleted)", &m));
    CHECK(is_named(&m, "/memfd:a b\nc\\013\\\n (deleted)"));
    CHECK_EQ(m.flags, (uint32_t)MAP_SHARED);
    CHECK(parse("1000-2000 r-xp 0 0:1 5 /tmp/\x1b[2J\xff \\01", &m));
    CHECK(is_named(&m, "/tmp/\x1b[2J\xff \\01"));
    CHECK(parse("1000-2000 r-xp 0 0:1 5 /x\\012", &m));
    CHECK(is_named(&m, "/x\n"));
    CHECK(parse("1000-2000 rwxs 0 0:1 5 /SYSV00000000 (deleted)", &m));
    CHECK(is_named(&m, "/SYSV00000000 (deleted)"));
}

TEST(memory_without_a_file_has_the_name_of_the_kernels_record) {
    PdMmap m;

    CHECK(parse("7f0000001000-7f0000002000 rwxp 00000000 00:00 0 ", &m));
    CHECK(is_named(&m, "//anon"));
    CHECK_EQ(m.pgoff, 0x7f0000001000U);
    CHECK(parse("1000-2000 rwxp 00000000 00:00 0", &m));
    CHECK(is_named(&m, "//anon"));
    CHECK(parse("1000-2000 rwxp 00000000 00:00 0   [anon:v8 code]", &m));
    CHECK(is_named(&m, "//anon"));
    CHECK(parse("1000-2000 rwxs 00000000 00:01 9   [anon_shmem:jit]", &m));
    CHECK(is_named(&m, "/dev/zero (deleted)"));
    CHECK(parse("1000-2000 r-xp 00000000 00:00 0   [vdso]", &m));
    CHECK(is_named(&m, "[vdso]"));
    CHECK_EQ(m.pgoff, 0U);
    CHECK(parse("1000-2000 rwxp 00000000 00:00 0   [stack]", &m));
    CHECK(is_named(&m, "[stack]"));
    CHECK(!parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", &m));
}

TEST(a_file_with_the_name_of_special_memory_is_a_file) {
    PdMmap m;

    CHECK(parse("1000-2000 r-xp 0 fe:00 7 [vsyscall]", &m));
    CHECK(is_named(&m, "[vsyscall]"));
}

TEST(a_mapping_at_the_top_of_the_address_space_is_kept) {
    PdMmap m;

    CHECK(parse("fffffffffffff000-ffffffffffffffff r-xp ffffffffffffffff ffffffff:ffffffff "
                "18446744073709551615 /x",
                &m));
    CHECK_EQ(m.inode, UINT64_MAX);
    CHECK_EQ(m.minor, UINT32_MAX);
}

TEST(invalid_mapping_line_is_refused) {
    static const char *const lines[] = {
        "",
        "-",
        "1000",
        "1000-",
        "1000-2000",
        "1000-2000 ",
        "1000-2000 r-xp",
        "1000-2000 r-x",
        "1000-2000 r-xp 0",
        "1000-2000 r-xp 0 fe",
        "1000-2000 r-xp 0 fe:0",
        "1000-2000 r-xp 0 fe:0 ",
        "1000-2000 r-xp 0 fe:0 x",
        "1000-2000 r-xp0 fe:0 1",
        "2000-1000 r-xp 0 fe:0 1 /x",
        "1000-1000 r-xp 0 fe:0 1 /x",
        "g000-2000 r-xp 0 fe:0 1 /x",
        "A000-B000 r-xp 0 fe:0 1 /x",
        " 1000-2000 r-xp 0 fe:0 1 /x",
        "1000-12345678123456781 r-xp 0 fe:0 1 /x",
        "1000-2000 r-xp 0 100000000:0 1 /x",
        "1000-2000 r-xp 0 fe:0 18446744073709551616 /x",
    };
    PdMmap m = {.start = 77};

    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        CHECK(!parse(lines[i], &m));
        CHECK_EQ(m.start, 77U);
    }
}

TEST(a_private_readable_mapping_is_returned_on_request) {
    static const char *const wanted[] = {
        "1000-2000 r--p 00000000 fe:00 12   /lib/a",
        "1000-2000 r-xp 00000000 fe:00 12   /lib/a",
    };
    static const char *const others[] = {
        "1000-2000 rw-p 00000000 fe:00 12   /lib/a", "1000-2000 r--s 00000000 fe:00 12   /lib/a",
        "1000-2000 ---p 00000000 fe:00 12   /lib/a", "1000-2000 r--p 00000000 00:00 0    [vvar]",
        "1000-2000 r--p 00000000 00:00 0 ",
    };
    PdMmap m;

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        CHECK(mapping_parse(strcpy(line, wanted[i]), strlen(wanted[i]), true, &m));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        CHECK(!mapping_parse(strcpy(line, others[i]), strlen(others[i]), true, &m));
}

TEST_MAIN()
