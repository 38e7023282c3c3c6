/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/emit.h"

#include "test.h"

/* Records that we write ourselves have the sizes, trailers and bounds of the kernel's. */

static const PdTrailer trailer = {
    .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU,
    .id = 77,
    .time = 1234567890123,
    .pid = 10,
    .tid = 11,
    .cpu = 3,
};

static Bytes bytes_of(const char *s) {
    return (Bytes){.data = (const uint8_t *)s, .size = strlen(s)};
}

TEST(a_comm_has_header_ids_padded_name_and_trailer) {
    _cleanup_(buffer_done) Buffer b = {};
    PdComm comm = {.pid = 10, .tid = 11, .exec = true, .comm = bytes_of("bash")};

    pd_emit_comm(&b, &trailer, &comm);
    CHECK_OK(buffer_error(&b));
    CHECK_EQ(b.size, (size_t)8 + 8 + 8 + 32);
    CHECK_EQ(load_u32(b.data, false), (uint32_t)PD_RECORD_COMM);
    CHECK_EQ(load_u16(b.data + 4, false), (uint16_t)PD_MISC_COMM_EXEC);
    CHECK_EQ(load_u16(b.data + 6, false), (uint16_t)b.size);
    CHECK_STREQ((const char *)b.data + 16, "bash");
    CHECK_EQ(load_u32(b.data + 24, false), 10U);
    CHECK_EQ(load_u64(b.data + 32, false), (uint64_t)1234567890123);
    CHECK_EQ(load_u32(b.data + 40, false), 3U);
    CHECK_EQ(load_u64(b.data + 48, false), (uint64_t)77);
}

TEST(a_symbol_is_read_back_as_written) {
    _cleanup_(buffer_done) Buffer b = {};
    PdKsymbol symbol = {.addr = 0xffffffffc0100000,
                        .length = 64,
                        .ksym_type = 1,
                        .name = bytes_of("bpf_prog_01_a")};
    PdRecord record;
    PdBody body;

    pd_emit_ksymbol(&b, NULL, &symbol);
    CHECK_OK(buffer_error(&b));
    record = pd_record_at(b.data, false);
    CHECK_EQ((size_t)record.size, b.size);
    CHECK_OK(pd_record_parse(&record, NULL, &body));
    CHECK_EQ(body.ksymbol.addr, symbol.addr);
    CHECK_EQ(body.ksymbol.length, 64U);
    CHECK_EQ(body.ksymbol.ksym_type, 1);
    CHECK(bytes_equal(body.ksymbol.name, symbol.name));
}

TEST(a_long_name_is_truncated_and_ends_with_nul) {
    _cleanup_(buffer_done) Buffer b = {};
    char name[9000];
    PdMmap mmap = {.filename = {.data = (uint8_t *)name, .size = sizeof(name)}};

    memset(name, 'x', sizeof(name));
    pd_emit_mmap2(&b, &trailer, PD_MISC_USER, &mmap);
    CHECK_OK(buffer_error(&b));
    CHECK_EQ(b.size, (size_t)8 + 8 + 24 + 24 + 8 + 4096 + 32);
    CHECK_EQ(b.data[b.size - 33], 0);
    CHECK_EQ(b.data[b.size - 34], 'x');
}

TEST(a_build_id_replaces_the_inode) {
    static const uint8_t id[20] = {1, 2, 3};
    _cleanup_(buffer_done) Buffer b = {};
    PdMmap mmap = {.build_id = id, .build_id_size = 20, .filename = bytes_of("/bin/sh")};

    pd_emit_mmap2(&b, &trailer, PD_MISC_USER, &mmap);
    CHECK_OK(buffer_error(&b));
    CHECK_EQ(load_u16(b.data + 4, false), (uint16_t)(PD_MISC_USER | PD_MISC_MMAP_BUILD_ID));
    CHECK_EQ(b.data[40], 20);
    CHECK_EQ(b.data[44], 1);
    CHECK_EQ(b.size % 8, (size_t)0);
}

TEST(a_mark_is_a_header_without_a_body) {
    _cleanup_(buffer_done) Buffer b = {};

    pd_emit_mark(&b, PD_RECORD_FINISHED_ROUND);
    CHECK_EQ(b.size, (size_t)8);
    CHECK_EQ(load_u16(b.data + 6, false), (uint16_t)8);
}

TEST_MAIN()
