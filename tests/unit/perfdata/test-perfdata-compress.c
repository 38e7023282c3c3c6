/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/compress.h"

#include <zstd.h>

#include "make-recording.h"

/* For records of any kind, frames stay within their bounds and give back the same bytes. */

/* Unpacks what was stored; counts and bounds of the frames on the way. */
typedef struct Unpacked {
    Buffer raw;
    unsigned frames, plain;
    size_t largest_raw, largest_record;
} Unpacked;

static bool unpack(Bytes stored, bool swap, Unpacked *u) {
    static uint8_t room[PD_FRAME_RAW_MAX];

    for (size_t at = 0; at < stored.size;) {
        size_t size = load_u16(stored.data + at + 6, swap), n;

        if (size < 8 || size > stored.size - at)
            return false;
        u->largest_record = MAX(u->largest_record, size);
        if (load_u32(stored.data + at, swap) != PD_RECORD_COMPRESSED) {
            buffer_append(&u->raw, stored.data + at, size);
            u->plain++;
            at += size;
            continue;
        }
        if (ZSTD_findFrameCompressedSize(stored.data + at + 8, size - 8) != size - 8)
            return false;
        n = ZSTD_decompress(room, sizeof(room), stored.data + at + 8, size - 8);
        if (ZSTD_isError(n) || n == 0)
            return false;
        for (size_t k = 0; k < n; k += load_u16(room + k + 6, swap))
            if (n - k < 8 || load_u16(room + k + 6, swap) > n - k)
                return false;
        buffer_append(&u->raw, room, n);
        u->largest_raw = MAX(u->largest_raw, n);
        u->frames++;
        at += size;
    }
    return buffer_error(&u->raw) == 0;
}

static uint64_t random_state;

static uint64_t random_u64(void) {
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return random_state ^ random_state >> 29;
}

/* Records of `size` bytes whose first `noise` bytes cannot be compressed. */
static void put_noise(Buffer *b, size_t size, size_t noise, bool swap) {
    put_header(b, PD_RECORD_SAMPLE, 0, (uint16_t)size, swap);
    for (size_t i = 8; i < size; i += 8)
        buffer_u64(b, i < noise ? random_u64() : 0, false);
}

static void check_round(const Buffer *records, bool swap, Unpacked *u) {
    _cleanup_(pd_compressor_freep) PdCompressor *c = NULL;
    _cleanup_(buffer_done) Buffer out = {};
    size_t taken = 0;

    CHECK_OK(pd_compressor_new(3, swap, &c));
    CHECK_OK(pd_compressor_take(c, buffer_bytes(records), true, &out, &taken));
    CHECK_EQ(taken, records->size);
    CHECK(unpack(buffer_bytes(&out), swap, u));
    CHECK(u->raw.size == records->size && memcmp(u->raw.data, records->data, taken) == 0);
    CHECK(u->largest_record <= 65528);
    CHECK(u->largest_raw <= PD_FRAME_RAW_MAX);
}

TEST(samples_become_large_frames_in_both_byte_orders) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer records = {};
        Unpacked u = {};

        for (unsigned i = 0; i < 20000; i++)
            put_sample(&records, i, swap);
        check_round(&records, swap, &u);
        CHECK_EQ(u.frames, 4U);
        CHECK_EQ(u.plain, 0U);
        buffer_done(&u.raw);
    }
}

TEST(incompressible_data_is_split_until_a_frame_fits) {
    _cleanup_(buffer_done) Buffer records = {};
    Unpacked u = {};

    random_state = 1;
    for (unsigned i = 0; i < 400; i++)
        put_noise(&records, 4096, 2048, false);
    check_round(&records, false, &u);
    CHECK(u.frames > 10);
    CHECK_EQ(u.plain, 0U);
    buffer_done(&u.raw);
}

TEST(a_record_that_does_not_shrink_is_stored_uncompressed) {
    _cleanup_(buffer_done) Buffer records = {};
    Unpacked u = {};

    random_state = 2;
    for (unsigned i = 0; i < 5; i++)
        put_noise(&records, 65528, 65528, false);
    put_sample(&records, 1, false);
    check_round(&records, false, &u);
    CHECK_EQ(u.frames, 0U);
    CHECK_EQ(u.plain, 6U);
    buffer_done(&u.raw);
}

TEST(a_mix_of_noise_and_samples_is_read_back_in_order) {
    _cleanup_(buffer_done) Buffer records = {};
    Unpacked u = {};

    random_state = 3;
    for (unsigned i = 0; i < 3000; i++) {
        size_t size = 8 + random_u64() % 1024 * 8;

        put_noise(&records, size, random_u64() % 2 ? size : 0, false);
        put_sample(&records, i, false);
    }
    check_round(&records, false, &u);
    CHECK(u.frames > 20);
    buffer_done(&u.raw);
}

TEST(a_frame_with_free_space_is_left_open) {
    _cleanup_(pd_compressor_freep) PdCompressor *c = NULL;
    _cleanup_(buffer_done) Buffer records = {}, out = {};
    size_t taken = 1;

    CHECK_OK(pd_compressor_new(1, false, &c));
    put_sample(&records, 1, false);
    CHECK_OK(pd_compressor_take(c, buffer_bytes(&records), false, &out, &taken));
    CHECK_EQ(taken, (size_t)0);
    CHECK_EQ(out.size, (size_t)0);
    while (records.size <= PD_FRAME_RAW_MAX)
        put_sample(&records, 2, false);
    CHECK_OK(pd_compressor_take(c, buffer_bytes(&records), false, &out, &taken));
    CHECK_EQ(taken, (size_t)PD_FRAME_RAW_MAX / MADE_SAMPLE_SIZE * MADE_SAMPLE_SIZE);
}

TEST_MAIN()
