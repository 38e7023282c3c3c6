/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-container.h"
#include "test.h"

/* The bytes behind a record: read, skipped, cut off and of a size that cannot be. */

/* An AUXTRACE record of `payload` bytes, of which `there` are, then a sample. */
static Buffer make_auxtrace(uint64_t payload, size_t there) {
    Maker m = {};

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_head(&m, PD_RECORD_AUXTRACE, 0, 48);
    buffer_u64(&m.b, payload, false);
    buffer_zero(&m.b, 32);
    for (size_t i = 0; i < there; i++)
        buffer_append(&m.b, &(uint8_t){(uint8_t)i}, 1);
    put_sample(&m, 11, 1000);
    return m.b;
}

TEST(a_payload_is_read_or_skipped) {
    _cleanup_(buffer_done) Buffer whole = make_auxtrace(100, 100);
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    uint8_t bytes[64];
    PdRecord rec;
    Seen seen;

    CHECK_OK(open_buffer(&whole, &r));
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.payload, 100);
    CHECK_EQ(seen.samples, 1);
    CHECK_OK(pd_reader_rewind(r));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_payload(r, bytes, sizeof(bytes)), 0);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.payload, 100);
    CHECK_EQ(pd_reader_payload(r, bytes, 64), 64);
    CHECK_EQ(bytes[63], 63);
    CHECK_EQ(pd_reader_payload(r, bytes, 64), 36);
    CHECK_EQ(bytes[35], 99);
    CHECK_EQ(pd_reader_payload(r, bytes, 64), 0);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_SAMPLE);
    CHECK(!pd_reader_damage(r));
}

TEST(a_payload_that_is_cut_off_is_not_whole) {
    for (size_t there = 40; there <= 100; there += 60) {
        _cleanup_(buffer_done) Buffer whole = make_auxtrace(100, there);
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        PdRecord rec;

        whole.size -= PD_RECORD_HEADER_SIZE + 16; /* the sample */
        CHECK_OK(open_buffer(&whole, &r));
        CHECK_EQ(pd_reader_next(r, &rec), 1);
        CHECK_EQ(pd_reader_next(r, &rec), 1);
        CHECK_EQ(rec.type, PD_RECORD_AUXTRACE);
        CHECK_EQ(pd_record_payload_is_whole(&rec), there == 100);
        rec.type = PD_RECORD_SAMPLE;
        rec.payload = 0;
        CHECK(pd_record_payload_is_whole(&rec));
    }
}

TEST(a_payload_of_wrong_size_ends_the_reading) {
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 47, 1000};

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        _cleanup_(buffer_done) Buffer whole = make_auxtrace(sizes[i], 10);
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        Seen seen;

        CHECK_OK(open_buffer(&whole, &r));
        CHECK_OK(read_all(r, &seen));
        CHECK_EQ(seen.records, 2);
        CHECK_EQ(seen.payload, 34);
        CHECK(strstr(pd_reader_damage(r)->text, "cut off"));
    }
}

TEST_MAIN()
