/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/record.h"

#include "make-body.h"
#include "test.h"

/* Types and their names, and what hostile bodies come to. */

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

TEST(similar_names_of_types_are_offered_in_every_spelling) {
    static const struct {
        const char *name, *near;
    } rows[] = {
        {"SAMLPE", "SAMPLE"},
        {"perf_record_samlpe", "SAMPLE"},
        {"trcaing_data", "TRACING_DATA"},
        {"HEADER_ATR", "HEADER_ATTR"},
        {"nosuch", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        NearNames near = {};

        pd_record_type_near(rows[i].name, &near);
        CHECK_STREQ(near.n > 0 ? near.names[0].name : "", rows[i].near ?: "");
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

TEST(a_body_is_unchanged_on_failure) {
    PdBody body = {.lost = {.id = 1, .lost = 2}};
    _cleanup_(make_done) Make m = {};
    PdRecord r;

    u64(&m, 7);
    r = make_record(&m, PD_RECORD_LOST, 0);
    CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
    CHECK_EQ(body.lost.id, 1U);
    CHECK_EQ(body.lost.lost, 2U);
}

TEST(counts_beyond_the_record_are_refused) {
    static const struct {
        uint32_t type;
        unsigned skip; /* bytes before the count */
    } counted[] = {
        {PD_RECORD_NAMESPACES, 8}, {PD_RECORD_CALLCHAIN_DEFERRED, 8}, {PD_RECORD_ID_INDEX, 0},
        {PD_RECORD_THREAD_MAP, 0}, {PD_RECORD_STAT_CONFIG, 0},        {PD_RECORD_BPF_METADATA, 256},
    };
    static const uint64_t counts[] = {1ULL << 58, 1ULL << 59,       1ULL << 60, 1ULL << 61,
                                      1ULL << 63, (1ULL << 61) + 1, UINT64_MAX, 100};

    for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
        for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
            _cleanup_(make_done) Make m = {};
            PdRecord r;
            PdBody body;

            for (unsigned n = 0; n < counted[i].skip; n++)
                u8(&m, 0);
            u64(&m, counts[k]);
            for (unsigned n = 0; n < 8; n++)
                u64(&m, n);
            r = make_record(&m, counted[i].type, 0);
            CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
        }
}

/* The kernel leaves the flag standing for the next event, which did not ask for build ids. */
TEST(a_mapping_with_the_flag_for_a_build_id_may_lack_one) {
    static const uint32_t majors[] = {254, 8, 0, 259};

    for (int swap = 0; swap < 2; swap++)
        for (size_t i = 0; i < ARRAY_SIZE(majors); i++) {
            _cleanup_(make_done) Make m = {.swap = swap};
            PdRecord r;
            PdBody body;

            u32(&m, 5);
            u32(&m, 5);
            u64(&m, 0x1000);
            u64(&m, 0x2000);
            u64(&m, 0);
            u32(&m, majors[i]);
            u32(&m, 1);
            u64(&m, 326591);
            u64(&m, i == 0 ? 77 : 0);
            u32(&m, 5);
            u32(&m, 2);
            text(&m, "/bin/sh", 8);
            r = make_record(&m, PD_RECORD_MMAP2, PD_MISC_USER | PD_MISC_MMAP_BUILD_ID);
            CHECK_OK(pd_record_parse(&r, NULL, &body));
            CHECK_EQ(body.mmap.build_id_size, 0);
            CHECK(!body.mmap.build_id);
            CHECK_EQ(body.mmap.major, majors[i]);
            CHECK_EQ(body.mmap.inode, 326591U);
            CHECK_EQ(body.mmap.generation, i == 0 ? 77U : 0U);
            CHECK(bytes_equal_str(body.mmap.filename, "/bin/sh"));
        }
}

TEST(a_build_id_longer_than_its_field_is_refused) {
    _cleanup_(make_done) Make b = {};
    PdRecord r;
    PdBody body;

    make_build_id(&b);
    b.body.data[24] = 21;
    r = make_record(&b, PD_RECORD_BUILD_ID, PD_MISC_BUILD_ID_SIZE);
    CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
}

TEST(an_attr_of_size_zero_is_the_first_published_one) {
    _cleanup_(make_done) Make m = {};
    PdRecord r;
    PdBody body;

    make_header_attr(&m);
    store_u32(m.body.data + 4, 0, false);
    r = make_record(&m, PD_RECORD_HEADER_ATTR, 0);
    CHECK_OK(pd_record_parse(&r, NULL, &body));
    CHECK_EQ(body.header_attr.attr.size, (size_t)64);
    CHECK_EQ(body.header_attr.n_ids, 2U);
    store_u32(m.body.data + 4, 56, false);
    r = make_record(&m, PD_RECORD_HEADER_ATTR, 0);
    CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
    store_u32(m.body.data + 4, 88, false);
    r = make_record(&m, PD_RECORD_HEADER_ATTR, 0);
    CHECK_EQ(pd_record_parse(&r, NULL, &body), -EBADMSG);
}

TEST(a_payload_is_announced_by_two_types_that_are_long_enough) {
    static const struct {
        uint32_t type, size;
        uint64_t payload;
    } rows[] = {
        {PD_RECORD_AUXTRACE, 48, 0x100000005},
        {PD_RECORD_AUXTRACE, 47, 0},
        {PD_RECORD_TRACING_DATA, 12, 8},
        {PD_RECORD_TRACING_DATA, 11, 0},
        {PD_RECORD_SAMPLE, 48, 0},
    };

    for (int swap = 0; swap < 2; swap++)
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
            uint8_t data[48] = {};
            PdRecord r = {.type = rows[i].type, .size = rows[i].size, .data = data, .swap = swap};

            if (r.type == PD_RECORD_TRACING_DATA)
                store_u32(data + 8, 5, swap);
            else
                store_u64(data + 8, 0x100000005, swap);
            CHECK_EQ(pd_record_payload_size(&r), rows[i].payload);
        }
}

TEST_MAIN()
