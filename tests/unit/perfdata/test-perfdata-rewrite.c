/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/record/rewrite.h"

#include "make-record.h"
#include "test.h"

/* Every place of an id, in both byte orders; added identifiers; cuts at every byte. */

enum { OLD = 7, NEW = 0x70000, OTHER = 8, DEFAULT = 99 };

typedef struct Bench {
    PdEvents *events;
    PdEvent *event;
    PdRewriter *rewriter;
    Buffer out;
} Bench;

static void bench_done(Bench *b) {
    b->rewriter = pd_rewriter_free(b->rewriter);
    b->events = pd_events_free(b->events);
    buffer_done(&b->out);
}

static void bench_init(Bench *b, uint64_t sample_type, uint64_t read_format) {
    PdAttr attr = {.size = 128,
                   .sample_type = sample_type,
                   .read_format = read_format,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};
    uint64_t ids[] = {OLD, OTHER};

    assert(pd_events_new(&b->events) == 0);
    assert(pd_events_add(b->events, &attr, (Bytes){}, ids, 2, &b->event) == 0);
    assert(pd_rewriter_new(b->events, &b->rewriter) == 0);
    assert(pd_rewriter_map_id(b->rewriter, OLD, NEW) == 0);
}

static int rewrite(Bench *b, const PdRecord *record) {
    PdStamp stamp = {};

    buffer_clear(&b->out);
    (void)pd_events_stamp(b->events, record, &stamp);
    return pd_rewriter_record(b->rewriter, record, &stamp, &b->out);
}

static uint64_t word(const Bench *b, size_t i, bool swap) {
    return load_u64(b->out.data + PD_RECORD_HEADER_SIZE + i * 8, swap);
}

static const uint64_t sample_type =
    PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ADDR |
    PD_SAMPLE_ID | PD_SAMPLE_STREAM_ID | PD_SAMPLE_CPU | PD_SAMPLE_PERIOD | PD_SAMPLE_READ;
static const uint64_t group = PD_FORMAT_GROUP | PD_FORMAT_ID | PD_FORMAT_TOTAL_TIME_ENABLED |
                              PD_FORMAT_TOTAL_TIME_RUNNING | PD_FORMAT_LOST;

static PdRecord make_sample(Make *m) {
    const uint64_t words[] = {OLD, 0x1000, OLD, OLD, OLD, OLD, OLD, OLD,   OLD,
                              2,   OLD,    OLD, OLD, OLD, OLD, 6,   OTHER, 0};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        u64(m, words[i]);
    return make_record(m, PD_RECORD_SAMPLE, PD_MISC_USER);
}

TEST(replacing_ids_of_a_sample_changes_nothing_else) {
    for (unsigned swap = 0; swap < 2; swap++) {
        const uint64_t want[] = {NEW, 0x1000, OLD, OLD, OLD, NEW, NEW, OLD,   OLD,
                                 2,   OLD,    OLD, OLD, NEW, OLD, 6,   OTHER, 0};
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord record = make_sample(&m);

        bench_init(&b, sample_type, group);
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(b.out.size, record.size);
        for (size_t i = 0; i < ARRAY_SIZE(want); i++)
            CHECK_EQ(word(&b, i, swap), want[i]);
    }
}

TEST(a_sample_truncated_before_its_last_id_is_refused) {
    for (size_t size = 0; size < 8 * 17; size += 8) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {};
        PdRecord record;

        bench_init(&b, sample_type, group);
        (void)make_sample(&m);
        record = make_cut(&m, PD_RECORD_SAMPLE, 0, size);
        CHECK_EQ(pd_rewriter_record(b.rewriter, &record, &(PdStamp){.event = b.event}, &b.out),
                 -EBADMSG);
        CHECK_EQ(b.out.size, 0);
    }
}

TEST(a_group_of_absurd_length_is_refused) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record;

    bench_init(&b, PD_SAMPLE_READ, group);
    u64(&m, UINT64_MAX / 24 + 2);
    for (unsigned i = 0; i < 8; i++)
        u64(&m, OLD);
    record = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_EQ(rewrite(&b, &record), -EBADMSG);
}

TEST(an_identifier_is_added_in_front_of_a_sample) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord record;

        bench_init(&b, PD_SAMPLE_IP | PD_SAMPLE_TIME | PD_SAMPLE_ID, 0);
        pd_rewriter_add_identifier(b.rewriter);
        u64(&m, 0x1234);
        u64(&m, 5000);
        u64(&m, OLD);
        record = make_record(&m, PD_RECORD_SAMPLE, PD_MISC_KERNEL);
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(b.out.size, record.size + 8);
        CHECK_EQ(load_u16(b.out.data + 6, swap), record.size + 8);
        CHECK_EQ(load_u16(b.out.data + 4, swap), PD_MISC_KERNEL);
        CHECK_EQ(word(&b, 0, swap), NEW);
        CHECK_EQ(word(&b, 1, swap), 0x1234);
        CHECK_EQ(word(&b, 2, swap), 5000);
        CHECK_EQ(word(&b, 3, swap), NEW);
    }
}

TEST(a_sample_without_any_id_gets_that_of_its_event) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record;

    bench_init(&b, PD_SAMPLE_IP, 0);
    pd_rewriter_add_identifier(b.rewriter);
    CHECK_OK(pd_rewriter_set_default_id(b.rewriter, b.event, DEFAULT));
    u64(&m, OLD);
    record = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_EQ(rewrite(&b, &record), 1);
    CHECK_EQ(word(&b, 0, false), DEFAULT);
    CHECK_EQ(word(&b, 1, false), OLD);
}

TEST(a_sample_that_has_no_room_for_an_identifier_is_refused) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record;

    bench_init(&b, PD_SAMPLE_IP, 0);
    pd_rewriter_add_identifier(b.rewriter);
    buffer_zero(&m.body, PD_RECORD_SIZE_MAX - PD_RECORD_HEADER_SIZE);
    record = make_record(&m, PD_RECORD_SAMPLE, 0);
    CHECK_EQ(rewrite(&b, &record), -EMSGSIZE);
    CHECK_EQ(b.out.size, 0);
}

TEST(a_trailer_gets_ids_an_identifier_and_a_time) {
    for (unsigned swap = 0; swap < 2; swap++) {
        const uint64_t want[] = {12, 0, 0x6873, 0, 4444, DEFAULT, 0, DEFAULT};
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord record;

        bench_init(&b, PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ID | PD_SAMPLE_CPU, 0);
        pd_rewriter_add_identifier(b.rewriter);
        pd_rewriter_set_zero_time(b.rewriter, 4444);
        CHECK_OK(pd_rewriter_set_default_id(b.rewriter, b.event, DEFAULT));
        u64(&m, 12);
        u64(&m, 0);
        u64(&m, 0x6873);
        u64(&m, 0);
        u64(&m, 0);
        u64(&m, 0);
        u64(&m, 0);
        record = make_record(&m, PD_RECORD_COMM, 0);
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(b.out.size, record.size + 8);
        for (size_t i = 0; i < ARRAY_SIZE(want); i++)
            CHECK_EQ(word(&b, i, swap), want[i]);
    }
}

TEST(a_trailer_with_an_id_and_a_time_keeps_the_time) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record;

    bench_init(&b, PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME | PD_SAMPLE_STREAM_ID, 0);
    pd_rewriter_set_zero_time(b.rewriter, 4444);
    CHECK_OK(pd_rewriter_set_default_id(b.rewriter, b.event, DEFAULT));
    for (unsigned i = 0; i < 3; i++)
        u64(&m, i);
    u64(&m, 55);
    u64(&m, OLD);
    u64(&m, OLD);
    record = make_record(&m, PD_RECORD_FORK, 0);
    CHECK_EQ(rewrite(&b, &record), 1);
    CHECK_EQ(word(&b, 2, false), 2);
    CHECK_EQ(word(&b, 3, false), 55);
    CHECK_EQ(word(&b, 4, false), NEW);
    CHECK_EQ(word(&b, 5, false), NEW);
}

TEST(a_fork_without_time_gets_it_in_its_body_too) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record;

    bench_init(&b, PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME, 0);
    pd_rewriter_set_zero_time(b.rewriter, 4444);
    for (unsigned i = 0; i < 5; i++)
        u64(&m, 0);
    record = make_record(&m, PD_RECORD_FORK, 0);
    CHECK_EQ(rewrite(&b, &record), 1);
    CHECK_EQ(word(&b, 2, false), 4444);
    CHECK_EQ(word(&b, 3, false), 4444);
}

TEST(ids_in_bodies_of_other_records_are_replaced) {
    static const struct {
        uint32_t type;
        uint64_t ids; /* which words of the body are ids, a bit each */
    } rows[] = {
        {PD_RECORD_LOST, 1},      {PD_RECORD_THROTTLE, 6}, {PD_RECORD_UNTHROTTLE, 6},
        {PD_RECORD_READ, 8 + 32}, {PD_RECORD_STAT, 1},     {PD_RECORD_EVENT_UPDATE, 2},
        {PD_RECORD_COMM, 0},      {PD_RECORD_AUX, 0},      {PD_RECORD_THREAD_MAP, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {};
        uint64_t want = rows[i].ids;
        PdRecord record;

        bench_init(&b, PD_SAMPLE_IP | PD_SAMPLE_IDENTIFIER,
                   PD_FORMAT_ID | PD_FORMAT_TOTAL_TIME_ENABLED);
        for (unsigned k = 0; k < 6; k++)
            u64(&m, OLD);
        record = make_record(&m, rows[i].type, 0);
        if (rows[i].type < PD_RECORD_USER)
            want |= 32;
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(b.out.size, record.size);
        for (unsigned k = 0; k < 6; k++)
            CHECK_EQ(word(&b, k, false), want >> k & 1 ? NEW : OLD);
    }
}

TEST(records_about_a_dropped_event_are_dropped) {
    static const uint32_t types[] = {PD_RECORD_STAT, PD_RECORD_EVENT_UPDATE};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {};
        PdRecord record;

        bench_init(&b, PD_SAMPLE_IP, 0);
        CHECK_OK(pd_rewriter_drop_id(b.rewriter, OTHER));
        for (unsigned k = 0; k < 6; k++)
            u64(&m, OTHER);
        record = make_record(&m, types[i], 0);
        CHECK_EQ(rewrite(&b, &record), 0);
        CHECK_EQ(b.out.size, 0);
    }
}

static PdRecord make_id_index(Make *m, bool machines) {
    u64(m, 3);
    for (unsigned i = 0; i < 3; i++) {
        u64(m, OLD + i);
        u64(m, 1);
        u64(m, i);
        u64(m, UINT64_MAX);
    }
    for (unsigned i = 0; machines && i < 3; i++) {
        u64(m, 100 + i);
        u64(m, 0);
    }
    return make_record(m, PD_RECORD_ID_INDEX, 0);
}

TEST(an_id_index_loses_the_rows_of_dropped_events) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {.swap = swap};
        PdRecord record = make_id_index(&m, true);

        bench_init(&b, PD_SAMPLE_IP, 0);
        CHECK_OK(pd_rewriter_drop_id(b.rewriter, OTHER));
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(b.out.size, PD_RECORD_HEADER_SIZE + 8 + 2 * 32 + 2 * 16);
        CHECK_EQ(load_u16(b.out.data + 6, swap), b.out.size);
        CHECK_EQ(word(&b, 0, swap), 2);
        CHECK_EQ(word(&b, 1, swap), NEW);
        CHECK_EQ(word(&b, 3, swap), 0);
        CHECK_EQ(word(&b, 5, swap), OLD + 2);
        CHECK_EQ(word(&b, 7, swap), 2);
        CHECK_EQ(word(&b, 9, swap), 100);
        CHECK_EQ(word(&b, 11, swap), 102);
    }
}

TEST(an_id_index_without_rows_is_dropped) {
    _cleanup_(bench_done) Bench b = {};
    _cleanup_(make_done) Make m = {};
    PdRecord record = make_id_index(&m, false);

    bench_init(&b, PD_SAMPLE_IP, 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(pd_rewriter_drop_id(b.rewriter, OLD + i));
    CHECK_EQ(rewrite(&b, &record), 0);
    CHECK_EQ(b.out.size, 0);
}

TEST(a_truncated_id_index_is_refused) {
    for (size_t size = 0; size < 8 + 3 * 32; size += 8) {
        _cleanup_(bench_done) Bench b = {};
        _cleanup_(make_done) Make m = {};
        PdRecord record;

        bench_init(&b, PD_SAMPLE_IP, 0);
        (void)make_id_index(&m, false);
        record = make_cut(&m, PD_RECORD_ID_INDEX, 0, size);
        CHECK_EQ(rewrite(&b, &record), -EBADMSG);
    }
}

TEST(thousands_of_ids_are_distinguished) {
    _cleanup_(bench_done) Bench b = {};

    bench_init(&b, PD_SAMPLE_IDENTIFIER, 0);
    for (uint64_t id = 100; id < 5000; id++)
        CHECK_OK(pd_rewriter_map_id(b.rewriter, id, id + 1000000));
    for (uint64_t id = 100; id < 5100; id++) {
        _cleanup_(make_done) Make m = {};
        PdRecord record;

        u64(&m, id);
        record = make_record(&m, PD_RECORD_SAMPLE, 0);
        CHECK_EQ(rewrite(&b, &record), 1);
        CHECK_EQ(word(&b, 0, false), id < 5000 ? id + 1000000 : id);
    }
}

TEST(a_new_bit_is_set_in_the_attr_and_in_its_bytes) {
    for (unsigned swap = 0; swap < 2; swap++) {
        PdAttr attr = {.sample_type = PD_SAMPLE_IP};
        uint8_t raw[64] = {};

        store_u64(raw + 24, PD_SAMPLE_IP, swap);
        pd_attr_add_identifier(&attr, raw, sizeof(raw), swap);
        CHECK_EQ(attr.sample_type, PD_SAMPLE_IP | PD_SAMPLE_IDENTIFIER);
        CHECK_EQ(load_u64(raw + 24, swap), PD_SAMPLE_IP | PD_SAMPLE_IDENTIFIER);
    }
}

TEST_MAIN()
