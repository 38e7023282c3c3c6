/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-container.h"
#include "test.h"

/* Every container in both byte orders, and what its header says. */

TEST(a_file_of_either_byte_order_is_read) {
    for (int swap = 0; swap < 2; swap++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        _cleanup_(buffer_done) Buffer records = make_samples(swap, N_MARKS);
        FileShape shape = {
            .swap = swap, .data_size = UINT64_MAX, .records = buffer_bytes(&records)};
        _cleanup_(buffer_done) Buffer file = make_file(&shape);
        const PdHeader *h;
        Bytes body;
        Seen seen;

        CHECK_OK(open_buffer(&file, &r));
        h = pd_reader_header(r);
        CHECK_EQ(h->mode, PD_MODE_FILE);
        CHECK_EQ(h->magic_version, 2);
        CHECK_EQ(h->big_endian, is_big(swap));
        CHECK_EQ(h->attr_size, ATTR_ENTRY);
        CHECK_EQ(h->data_offset, DATA_AT);
        CHECK(!h->unfinished);
        CHECK_EQ(pd_events_count(pd_reader_events(r)), 2);
        CHECK_STREQ(pd_events_at(pd_reader_events(r), 1)->name, "second");
        CHECK_EQ(pd_events_at(pd_reader_events(r), 1)->raw_size, 64);
        CHECK_EQ(pd_events_by_id(pd_reader_events(r), 12)->index, 1);
        CHECK_OK(read_all(r, &seen));
        CHECK_EQ(seen.samples, N_MARKS);
        CHECK_EQ(seen.bad_order, 0);
        CHECK(!pd_reader_damage(r));
        CHECK(pd_reader_has_feature(r, PD_FEATURE_HOSTNAME));
        CHECK(!pd_reader_has_feature(r, PD_FEATURE_ARCH));
        CHECK_OK(pd_reader_feature(r, PD_FEATURE_HOSTNAME, &body));
        CHECK_EQ(body.size, 68);
        CHECK(memcmp(body.data + 4, "host", 5) == 0);
        CHECK_EQ(pd_reader_feature(r, PD_FEATURE_ARCH, &body), -ENOENT);
        CHECK_EQ(pd_reader_feature(r, 256, &body), -ENOENT);
        CHECK_EQ(pd_reader_on_disk(r, PD_RECORD_SAMPLE), N_MARKS);
        CHECK_EQ(pd_reader_position(r), pd_reader_total(r));
    }
}

/* A file of PERFFILE times: two events of the type, config 9, which its table calls "legacy". The
 * reader borrows the bytes. */
static int open_version_1(uint32_t type, bool swap, Buffer *file, PdReader **ret) {
    _cleanup_(buffer_done) Buffer records = make_samples(swap, 2);
    FileShape shape = {.swap = swap,
                       .version_1 = true,
                       .data_size = UINT64_MAX,
                       .records = buffer_bytes(&records),
                       .no_features = true};

    *file = make_file(&shape);
    store_u64(file->data + 56, DATA_AT + records.size, swap);
    for (unsigned i = 0; i < 2; i++)
        store_u32(file->data + ATTRS_AT + i * ATTR_ENTRY, type, swap);
    return open_buffer(file, ret);
}

TEST(version_1_names_tracepoints_in_a_table) {
    for (int swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer file = {};
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        Seen seen;

        CHECK_OK(open_version_1(PD_TYPE_TRACEPOINT, swap, &file, &r));
        CHECK_EQ(pd_reader_header(r)->magic_version, 1);
        CHECK_EQ(pd_reader_header(r)->big_endian, is_big(swap));
        CHECK_STREQ(pd_events_at(pd_reader_events(r), 0)->name, "legacy");
        CHECK_OK(read_all(r, &seen));
        CHECK_EQ(seen.samples, 2);
        CHECK(!pd_reader_damage(r));
    }
}

/* An old perf wrote "cycles" there for the cpu-clock that it fell back to. */
TEST(version_1_table_does_not_rename_an_event_that_its_attr_names) {
    static const struct {
        uint32_t type;
        const char *name;
    } rows[] = {
        {PD_TYPE_SOFTWARE, "dummy"},
        {PD_TYPE_HARDWARE, "ref-cycles"},
        {PD_TYPE_RAW, "legacy"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer file = {};
        _cleanup_(pd_reader_freep) PdReader *r = NULL;

        CHECK_OK(open_version_1(rows[i].type, false, &file, &r));
        CHECK_STREQ(pd_events_at(pd_reader_events(r), 0)->name, rows[i].name);
    }
}

/* A table of no bytes may begin anywhere, even where the bytes of a table are: three offsets, and
 * both byte orders. */
TEST(version_1_with_an_empty_table_names_events_by_their_attr) {
    static const struct {
        uint32_t type;
        uint64_t config;
        const char *name;
    } rows[] = {
        {PD_TYPE_SOFTWARE, 0, "cpu-clock"}, {PD_TYPE_SOFTWARE, 1, "task-clock"},
        {PD_TYPE_HARDWARE, 0, "cycles"},    {PD_TYPE_HW_CACHE, 0, "L1-dcache-loads"},
        {PD_TYPE_RAW, 9, "raw 0x9"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows) * 6; i++) {
        _cleanup_(buffer_done) Buffer file = {};
        _cleanup_(pd_reader_freep) PdReader *r = NULL, *spare = NULL;
        size_t row = i / 6;
        bool swap = i % 2;
        Seen seen;

        CHECK_OK(open_version_1(rows[row].type, swap, &file, &spare));
        store_u64(file.data + 56, (uint64_t[]){file.size - 72, 0, UINT64_MAX}[i / 2 % 3], swap);
        store_u64(file.data + 64, 0, swap);
        store_u64(file.data + ATTRS_AT + 8, rows[row].config, swap);
        CHECK_OK(open_buffer(&file, &r));
        CHECK_EQ(pd_reader_header(r)->magic_version, 1);
        CHECK_STREQ(pd_events_at(pd_reader_events(r), 0)->name, rows[row].name);
        CHECK_OK(read_all(r, &seen));
        CHECK_EQ(seen.samples, 2);
        CHECK(!pd_reader_damage(r));
    }
}

TEST(header_larger_than_its_file_is_refused) {
    static const uint64_t sizes[] = {UINT64_MAX, 1ULL << 63, 1000000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        _cleanup_(buffer_done) Buffer records = make_samples(false, 2);
        FileShape shape = {.data_size = UINT64_MAX, .records = buffer_bytes(&records)};
        _cleanup_(buffer_done) Buffer file = make_file(&shape);

        store_u64(file.data + 8, sizes[i], false);
        CHECK_EQ(open_buffer(&file, &r), -EBADMSG);
    }
}

TEST(feature_bits_of_a_32_bit_big_endian_writer_are_read) {
    bool swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    FileShape shape = {.swap = swap, .words_of_32 = true, .data_size = UINT64_MAX};
    _cleanup_(buffer_done) Buffer records = make_samples(swap, 1), file = {};

    shape.records = buffer_bytes(&records);
    file = make_file(&shape);
    CHECK_OK(open_buffer(&file, &r));
    CHECK(pd_reader_has_feature(r, PD_FEATURE_HOSTNAME));
    CHECK(pd_reader_has_feature(r, PD_FEATURE_EVENT_DESC));
    CHECK(!pd_reader_damage(r));
}

TEST(pipe_of_either_byte_order_describes_itself) {
    for (int swap = 0; swap < 2; swap++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        _cleanup_(buffer_done) Buffer pipe = make_pipe(swap);
        Bytes body;
        Seen seen;

        CHECK_OK(open_buffer(&pipe, &r));
        CHECK_EQ(pd_reader_header(r)->mode, PD_MODE_PIPE);
        CHECK_EQ(pd_reader_header(r)->attr_size, 0);
        for (int pass = 0; pass < 2; pass++) {
            CHECK_OK(read_all(r, &seen));
            CHECK_EQ(seen.records, 6);
            CHECK_EQ(seen.samples, 1);
            CHECK_EQ(seen.bad_order, 0);
            CHECK_EQ(pd_events_count(pd_reader_events(r)), 2);
            CHECK_STREQ(pd_events_at(pd_reader_events(r), 1)->name, "second");
            CHECK(pd_reader_has_feature(r, PD_FEATURE_HOSTNAME));
            CHECK(!pd_reader_has_feature(r, 32)); /* the mark of the end */
            CHECK_OK(pd_reader_feature(r, PD_FEATURE_HOSTNAME, &body));
            CHECK_EQ(body.size, 68);
            CHECK_EQ(pd_reader_on_disk(r, PD_RECORD_HEADER_FEATURE), 3);
            CHECK(!pd_reader_damage(r));
            CHECK_OK(pd_reader_rewind(r));
        }
    }
}

TEST(a_feature_above_the_limit_is_skipped) {
    _cleanup_(buffer_done) Buffer file = make_file(&(FileShape){.data_size = UINT64_MAX});
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    PdReaderLimits limits = {.feature_bytes = 67};
    Bytes body;

    CHECK_OK(pd_reader_open_memory(buffer_bytes(&file), &limits, &r, NULL));
    CHECK_EQ(pd_reader_feature(r, PD_FEATURE_HOSTNAME, &body), -EFBIG);
}

TEST(size_of_simpleperf_records_has_32_bits) {
    _cleanup_(buffer_done) Buffer whole = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Maker m = {};
    PdRecord rec;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_head(&m, PD_RECORD_SIMPLEPERF + 5, 6, 11); /* 6 * 65536 + 11 */
    buffer_zero(&m.b, 6 * 65536 + 11 - 8);
    put_sample(&m, 11, 1000);
    put_head(&m, PD_RECORD_SIMPLEPERF + 5, UINT16_MAX, UINT16_MAX);
    whole = m.b;
    CHECK_OK(open_buffer(&whole, &r));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.size, 6 * 65536 + 11);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_SAMPLE);
    CHECK_EQ(pd_reader_next(r, &rec), 0);
    CHECK(strstr(pd_reader_damage(r)->text, "claims 4294967295 bytes"));
    CHECK_EQ(pd_reader_on_disk(r, PD_RECORD_SIMPLEPERF + 5), 1);
}

TEST(file_that_is_not_a_recording_is_refused_with_a_reason) {
    PdReader *r = NULL;
    PdDamage why = {};

    CHECK_EQ(pd_reader_open_memory((Bytes){}, NULL, &r, &why), -EBADMSG);
    CHECK(strstr(why.text, "empty"));
    CHECK_EQ(pd_reader_open_memory((Bytes){(const uint8_t *)"It is some text, no more.", 25}, NULL,
                                   &r, &why),
             -EBADMSG);
    CHECK(why.text[0]);
    CHECK_EQ(pd_reader_open("/nonexistent/perf.data", NULL, &r, &why), -ENOENT);
    CHECK(why.text[0]);
    CHECK(!r);
}

TEST_MAIN()
