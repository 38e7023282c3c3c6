/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-container.h"

#include "test.h"

/* Compressed recordings: chunks, frames and records that end where they like, and damage. */

TEST(records_straddle_compressed_chunks) {
    static const uint32_t types[] = {PD_RECORD_COMPRESSED, PD_RECORD_COMPRESSED2};

    for (unsigned i = 0; i < 16; i++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        bool swap = i & 1, file_mode = i & 4, end_frames = i & 8;
        uint32_t type = types[i >> 1 & 1];
        _cleanup_(buffer_done) Buffer samples = make_samples(swap, 1000), whole = {};
        Maker m = {.swap = swap};
        Seen seen;

        if (!file_mode) {
            put_pipe_header(&m);
            put_header_attr(&m, 11);
            put_header_attr(&m, 12);
        }
        put_stream(&m, type, buffer_bytes(&samples), 1001, end_frames);
        if (file_mode) {
            _cleanup_(buffer_done) Buffer records = m.b;

            whole = make_file(&(FileShape){
                .swap = swap, .data_size = UINT64_MAX, .records = buffer_bytes(&records)});
        } else
            whole = m.b;
        CHECK_OK(open_buffer(&whole, &r));
        for (int pass = 0; pass < 2; pass++) {
            CHECK_OK(read_all(r, &seen));
            CHECK_EQ(seen.samples, 1000);
            CHECK_EQ(seen.decompressed, 1000);
            CHECK_EQ(seen.bad_order, 0);
            CHECK_EQ(pd_reader_on_disk(r, type), 24);
            CHECK_EQ(pd_reader_on_disk(r, PD_RECORD_SAMPLE), 0);
            CHECK(!pd_reader_damage(r));
            CHECK_OK(pd_reader_rewind(r));
        }
    }
}

TEST(plain_records_may_be_between_chunks) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_(buffer_done) Buffer samples = make_samples(false, 3), whole = {};
    Maker m = {};
    PdRecord rec;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_header_attr(&m, 12);
    put_stream(&m, PD_RECORD_COMPRESSED, (Bytes){samples.data, 30}, 30, true);
    put_head(&m, PD_RECORD_FINISHED_ROUND, 0, 8);
    put_stream(&m, PD_RECORD_COMPRESSED, (Bytes){samples.data + 30, 42}, 42, true);
    whole = m.b;
    CHECK_OK(open_buffer(&whole, &r));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK(rec.decompressed && rec.type == PD_RECORD_SAMPLE);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK(!rec.decompressed && rec.type == PD_RECORD_FINISHED_ROUND);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(load_u64(rec.data + 16, false), 1002);
    CHECK_EQ(pd_reader_next(r, &rec), 0);
    CHECK(!pd_reader_damage(r));
}

static const char *damage_of_chunk(Bytes frame, size_t lie, Seen *seen) {
    static PdDamage damage;
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_(buffer_done) Buffer whole = {};
    Maker m = {};

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_header_attr(&m, 12);
    put_head(&m, PD_RECORD_COMPRESSED2, 0, 16 + frame.size);
    buffer_u64(&m.b, frame.size + lie, false);
    buffer_append(&m.b, frame.data, frame.size);
    put_sample(&m, 11, 5000);
    whole = m.b;
    if (open_buffer(&whole, &r) < 0 || read_all(r, seen) < 0)
        return "failed";
    if (!pd_reader_damage(r))
        return "";
    damage = *pd_reader_damage(r);
    return damage.text;
}

TEST(damage_in_compressed_data_is_reported) {
    _cleanup_(buffer_done) Buffer samples = make_samples(false, 3);
    uint8_t out[4096];
    size_t n = ZSTD_compress(out, sizeof(out), samples.data, samples.size, 1);
    size_t part = ZSTD_compress(out + n, sizeof(out) - n, samples.data, 50, 1);
    Seen seen;

    CHECK_STREQ(damage_of_chunk((Bytes){out, n}, 0, &seen), "");
    CHECK_EQ(seen.samples, 4);
    CHECK(strstr(damage_of_chunk((Bytes){out, n}, 5, &seen), "announces"));
    CHECK_EQ(seen.samples, 4);
    CHECK(strstr(damage_of_chunk((Bytes){out + n, part}, 0, &seen), "ends within a record"));
    CHECK_EQ(seen.samples, 3);
    out[0] ^= 1;
    CHECK(strstr(damage_of_chunk((Bytes){out, n}, 0, &seen), "makes no sense"));
    CHECK_EQ(seen.samples, 0);
}

/* It would be behind the record in the file, where the compressed data goes on. */
TEST(a_compressed_record_has_no_payload) {
    Maker m = {};
    uint8_t out[4096];
    Seen seen;
    size_t n;

    put_head(&m, PD_RECORD_AUXTRACE, 0, 48);
    buffer_u64(&m.b, 100, false);
    buffer_zero(&m.b, 32);
    put_sample(&m, 11, 1000);
    n = ZSTD_compress(out, sizeof(out), m.b.data, m.b.size, 1);
    CHECK(strstr(damage_of_chunk((Bytes){out, n}, 0, &seen), "payload"));
    CHECK_EQ(seen.samples, 2);
    CHECK_EQ(seen.payload, 0);
    buffer_done(&m.b);
}

TEST(a_compression_bomb_is_read_in_bounded_memory) {
    _cleanup_(buffer_done) Buffer rounds = {}, whole = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_free_ uint8_t *out = malloc(60000);
    Maker m = {};
    size_t n;
    Seen seen;

    for (unsigned i = 0; i < 4 * 1024 * 1024; i++)
        buffer_u64(&rounds, PD_RECORD_FINISHED_ROUND | 8ULL << 48,
                   __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
    n = ZSTD_compress(out, 60000, rounds.data, rounds.size, 3);
    CHECK(!ZSTD_isError(n));
    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_chunk(&m, PD_RECORD_COMPRESSED, (Bytes){out, n});
    whole = m.b;
    CHECK_OK(open_buffer(&whole, &r));
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.records, 4 * 1024 * 1024 + 1);
}

TEST_MAIN()
