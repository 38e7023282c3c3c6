/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record.h"

#include "make-record.h"
#include "test.h"

/* Records of every type: names, bodies in both byte orders, and what hostile ones come to. */

TEST(every_type_up_to_the_newest_has_a_name) {
    for (uint32_t t = PD_RECORD_MMAP; t <= PD_RECORD_CALLCHAIN_DEFERRED; t++)
        CHECK(pd_record_type_name(t));
    for (uint32_t t = PD_RECORD_USER; t <= PD_RECORD_SCHEDSTAT_DOMAIN; t++)
        CHECK(pd_record_type_name(t));
    for (uint32_t t = PD_RECORD_SIMPLEPERF + 1; t <= PD_RECORD_SIMPLEPERF + 10; t++)
        CHECK(pd_record_type_name(t));
    CHECK_STREQ(pd_record_type_name(PD_RECORD_MMAP2), "MMAP2");
    CHECK_STREQ(pd_record_type_name(PD_RECORD_BPF_METADATA), "BPF_METADATA");
}

TEST(other_types_have_none) {
    static const uint32_t types[] = {0, 23, 63, 87, 32767, 32768, 32779, UINT32_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        PdRecord r = {.type = types[i], .size = 8, .data = (const uint8_t *)"\0\0\0\0\0\0\0\0"};
        PdBody body;

        CHECK(!pd_record_type_name(types[i]));
        CHECK_EQ(pd_record_parse(&r, NULL, &body), -EOPNOTSUPP);
    }
}

TEST(types_are_found_by_their_names) {
    static const struct {
        const char *name;
        int64_t type; /* negative: refused */
    } rows[] = {
        {"SAMPLE", 9},
        {"sample", 9},
        {"PERF_RECORD_SAMPLE", 9},
        {"Mmap2", 10},
        {"header_attr", 64},
        {"ATTR", 64},
        {"22", 22},
        {"0x51", 81},
        {"4294967295", UINT32_MAX},
        {"4294967296", -1},
        {"", -1},
        {"-1", -1},
        {"SAMPL", -1},
        {"9x", -1},
        {"PERF_RECORD_", -1},
        {" 9", -1},
        {"TRACING_DATA", 66},
        {"PERF_RECORD_HEADER_FEATURE", 80},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint32_t type = 12345;
        int r = pd_record_type_from_name(rows[i].name, &type);

        CHECK_EQ(r, rows[i].type < 0 ? -EINVAL : 0);
        CHECK_EQ(type, rows[i].type < 0 ? 12345U : (uint32_t)rows[i].type);
    }
}

TEST(a_name_without_nul_ends_at_the_trailer) {
    PdEvent event = {.trailer_size = 8};
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdBody body;

    u32(&m, 1);
    u32(&m, 2);
    text(&m, "sixteen chars!!!", 16);
    u64(&m, 0x4141414141414141);
    r = make_record(&m, PD_RECORD_COMM, 0);
    CHECK_OK(pd_record_parse(&r, &event, &body));
    CHECK(bytes_equal_str(body.comm.comm, "sixteen chars!!!"));
}

TEST(a_body_is_left_alone_on_failure) {
    PdBody body = {.lost = {.id = 1, .lost = 2}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;

    u64(&m, 7);
    r = make_record(&m, PD_RECORD_LOST, 0);
    CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
    CHECK_EQ(body.lost.id, 1U);
    CHECK_EQ(body.lost.lost, 2U);
}

TEST_MAIN()
