/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-container.h"
#include "test.h"

/* Recordings that are cut, unfinished or broken: all before the damage is read. */

/* Cuts the file at each byte: everything before the cut is read, and nothing is invented. */
static void check_cuts(const Buffer *whole, size_t records_at, size_t record_size,
                       unsigned before) {
    for (size_t n = 0; n < whole->size; n++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        _cleanup_free_ uint8_t *copy = malloc(n ? n : 1);
        unsigned expect;
        Bytes body;
        PdDamage why;
        Seen seen;
        int rc;

        memcpy(copy, whole->data, n);
        rc = pd_reader_open_memory((Bytes){copy, n}, NULL, &r, &why);
        if (rc < 0) {
            CHECK_EQ(rc, -EBADMSG);
            CHECK(why.text[0] != '\0');
            CHECK(n < PD_HEADER_SIZE);
            continue;
        }
        CHECK_OK(read_all(r, &seen));
        expect = n < records_at ? 0 : MIN((unsigned)((n - records_at) / record_size), before);
        CHECK_EQ(seen.samples, expect);
        for (unsigned bit = 0; bit < 256; bit++)
            (void)pd_reader_feature(r, bit, &body);
        CHECK(n < PD_HEADER_SIZE || pd_reader_damage(r));
    }
}

TEST(a_truncated_file_gives_all_records_before_the_cut) {
    _cleanup_(buffer_done) Buffer records = make_samples(false, N_MARKS), file = {};

    file = make_file(&(FileShape){.data_size = UINT64_MAX, .records = buffer_bytes(&records)});
    check_cuts(&file, DATA_AT, 24, N_MARKS);
}

TEST(a_truncated_pipe_gives_all_records_before_the_cut) {
    _cleanup_(buffer_done) Buffer pipe = make_pipe(true);

    for (size_t n = PD_PIPE_HEADER_SIZE; n < pipe.size; n++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        Seen seen;

        CHECK_OK(pd_reader_open_memory((Bytes){pipe.data, n}, NULL, &r, NULL));
        CHECK_OK(read_all(r, &seen));
        CHECK_EQ(seen.samples, 0);
    }
}

TEST(unfinished_file_is_read_to_its_end) {
    _cleanup_(buffer_done) Buffer records = make_samples(true, N_MARKS), file = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Seen seen;

    file = make_file(&(FileShape){.swap = true, .records = buffer_bytes(&records)});
    file.size = DATA_AT + records.size - 10;
    CHECK_OK(open_buffer(&file, &r));
    CHECK(pd_reader_header(r)->unfinished);
    CHECK(!pd_reader_has_feature(r, PD_FEATURE_HOSTNAME));
    CHECK(pd_reader_damage(r));
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.samples, N_MARKS - 1);
    CHECK(strstr(pd_reader_damage(r)->text, "cut off"));
    CHECK_EQ(pd_reader_damage(r)->offset, DATA_AT + (N_MARKS - 1) * 24);
}

TEST(finished_file_without_records_is_whole) {
    _cleanup_(buffer_done) Buffer file = make_file(&(FileShape){.data_size = UINT64_MAX});
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Seen seen;

    CHECK_OK(open_buffer(&file, &r));
    CHECK(!pd_reader_header(r)->unfinished);
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.records, 0);
    CHECK(!pd_reader_damage(r));
    CHECK(pd_reader_has_feature(r, PD_FEATURE_HOSTNAME));
}

TEST(broken_record_leaves_the_features_usable) {
    _cleanup_(buffer_done) Buffer records = make_samples(false, N_MARKS), file = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Bytes body;
    Seen seen;

    store_u16(records.data + 2 * 24 + 6, 4, false);
    file = make_file(&(FileShape){.data_size = UINT64_MAX, .records = buffer_bytes(&records)});
    CHECK_OK(open_buffer(&file, &r));
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.samples, 2);
    CHECK_EQ(pd_reader_damage(r)->offset, DATA_AT + 2 * 24);
    CHECK_OK(pd_reader_feature(r, PD_FEATURE_HOSTNAME, &body));
}

TEST_MAIN()
