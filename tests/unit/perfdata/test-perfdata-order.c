/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/order/order.h"

#include "make-container.h"

#include "test.h"

/* Rounds, late records and records without a time, as a recording has them. A recording is told by
 * a list of times: 0 is a FINISHED_ROUND, NONE a sample of the event that has no time. */

enum { ROUND = 0, NONE = 1, MAX_SEEN = 64 };

static void put_event(Maker *m, const PdAttr *like, uint64_t id, uint64_t sample_type) {
    PdAttr attr = *like;

    attr.sample_type = sample_type;
    put_head(m, PD_RECORD_HEADER_ATTR, 0, 8 + 64 + 8);
    pd_attr_encode(&attr, 64, &m->b, m->swap);
    buffer_u64(&m->b, id, m->swap);
}

static Buffer make(const uint64_t *times, size_t n, bool swap, bool sample_id_all) {
    PdAttr attr = {.type = PD_TYPE_SOFTWARE, .flags = sample_id_all ? PD_ATTR_SAMPLE_ID_ALL : 0};
    Maker m = {.swap = swap};

    put_pipe_header(&m);
    put_event(&m, &attr, 11, PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME);
    put_event(&m, &attr, 12, PD_SAMPLE_IDENTIFIER);
    for (size_t i = 0; i < n; i++)
        if (times[i] == ROUND)
            put_head(&m, PD_RECORD_FINISHED_ROUND, 0, 8);
        else if (times[i] == NONE) {
            put_head(&m, PD_RECORD_SAMPLE, PD_MISC_USER, 16);
            buffer_u64(&m.b, 12, swap);
        } else
            put_sample(&m, 11, times[i]);
    return m.b;
}

/* Returns the times in the order of the output, in the same notation. */
static int order(const Buffer *recording, uint64_t *seen, size_t *ret_n, uint64_t *ret_late) {
    PdOrderOptions options = {.memory_bytes = 1, .spill_folder = "/tmp"};
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *o = NULL;
    PdRecord record;
    PdStamp stamp;
    int r = open_buffer(recording, &reader);

    if (r >= 0)
        r = pd_order_new(reader, &options, &o);
    *ret_n = 0;
    while (r >= 0 && (r = pd_order_next(o, &record, &stamp)) > 0) {
        if (record.type == PD_RECORD_FINISHED_ROUND)
            seen[(*ret_n)++] = ROUND;
        else if (record.type == PD_RECORD_SAMPLE)
            seen[(*ret_n)++] = stamp.has_time ? stamp.time : NONE;
        if (*ret_n == MAX_SEEN)
            return -E2BIG;
    }
    *ret_late = pd_order_late(o);
    return r;
}

static bool comes_out(const uint64_t *in, const uint64_t *out, size_t n, uint64_t late) {
    for (int swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer recording = make(in, n, swap, true);
        uint64_t seen[MAX_SEEN], seen_late;
        size_t n_seen;

        if (order(&recording, seen, &n_seen, &seen_late) != 0 || n_seen != n || seen_late != late ||
            memcmp(seen, out, n * sizeof(*out)) != 0)
            return false;
    }
    return true;
}

#define COMES_OUT(late, in, ...)                                                                   \
    do {                                                                                           \
        static const uint64_t _in[] = in, _out[] = __VA_ARGS__;                                    \
        CHECK_EQ(ARRAY_SIZE(_in), ARRAY_SIZE(_out));                                               \
        CHECK(comes_out(_in, _out, ARRAY_SIZE(_in), late));                                        \
    } while (0)
#define LIST(...)                                                                                  \
    { __VA_ARGS__ }

TEST(without_rounds_all_records_are_sorted_at_the_end) {
    COMES_OUT(0, LIST(50, 40, 90, 20, 30), LIST(20, 30, 40, 50, 90));
}

TEST(a_round_releases_the_records_seen_before_the_previous_round) {
    COMES_OUT(0, LIST(50, 40, ROUND, 60, 45, ROUND, 70, 55, ROUND),
              LIST(ROUND, 40, 45, 50, ROUND, 55, 60, ROUND, 70));
}

TEST(a_late_record_is_sorted_into_the_next_round_and_counted) {
    COMES_OUT(2, LIST(50, ROUND, 60, ROUND, 30, 70, 20, 50, ROUND),
              LIST(ROUND, 50, ROUND, 20, 30, 50, 60, ROUND, 70));
}

TEST(a_record_without_time_keeps_its_place) {
    COMES_OUT(0, LIST(50, NONE, 40, NONE, ROUND, 10, NONE),
              LIST(NONE, NONE, ROUND, NONE, 10, 40, 50));
    COMES_OUT(0, LIST(50, UINT64_MAX, 40), LIST(UINT64_MAX, 40, 50));
}

TEST(empty_rounds_release_nothing) {
    COMES_OUT(0, LIST(ROUND, ROUND, 50, ROUND, ROUND, 60),
              LIST(ROUND, ROUND, ROUND, 50, ROUND, 60));
}

TEST(without_sample_id_all_records_keep_the_order_of_the_file) {
    static const uint64_t in[] = {50, 40, ROUND, 60, 45};
    _cleanup_(buffer_done) Buffer recording = make(in, ARRAY_SIZE(in), false, false);
    uint64_t seen[MAX_SEEN], late;
    size_t n;

    CHECK_OK(order(&recording, seen, &n, &late));
    CHECK_EQ(n, ARRAY_SIZE(in));
    CHECK(memcmp(seen, in, sizeof(in)) == 0);
}

TEST(a_payload_can_be_read_after_its_record) {
    Maker m = {};
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *o = NULL;
    PdRecord record = {};
    char payload[16];
    PdStamp stamp;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_sample(&m, 11, 70);
    put_head(&m, PD_RECORD_AUXTRACE, 0, 48);
    buffer_u64(&m.b, 8, false);
    buffer_zero(&m.b, 32);
    buffer_append(&m.b, "PAYLOAD!", 8);
    put_sample(&m, 11, 60);
    CHECK_OK(open_buffer(&m.b, &reader));
    CHECK_OK(pd_order_new(reader, NULL, &o));
    while (record.type != PD_RECORD_AUXTRACE)
        CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    CHECK_EQ(pd_reader_payload(reader, payload, sizeof(payload)), 8);
    CHECK(memcmp(payload, "PAYLOAD!", 8) == 0);
    CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    CHECK_EQ(stamp.time, 60U);
    buffer_done(&m.b);
}

TEST(a_promise_of_another_kind_releases_what_is_older) {
    static const uint64_t in[] = {30, 20, NONE, 40, 10};
    _cleanup_(buffer_done) Buffer recording = make(in, ARRAY_SIZE(in), false, true);
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(pd_order_freep) PdOrder *o = NULL;
    PdRecord record;
    PdStamp stamp;

    CHECK_OK(open_buffer(&recording, &reader));
    CHECK_OK(pd_order_new(reader, NULL, &o));
    do
        CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    while (record.type != PD_RECORD_SAMPLE);
    CHECK(!stamp.has_time);
    pd_order_release(o, 30);
    CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    CHECK_EQ(stamp.time, 20);
    CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    CHECK_EQ(stamp.time, 10);
    CHECK_EQ(pd_order_late(o), 1);
    CHECK_EQ(pd_order_next(o, &record, &stamp), 1);
    CHECK_EQ(stamp.time, 30);
}

TEST_MAIN()
