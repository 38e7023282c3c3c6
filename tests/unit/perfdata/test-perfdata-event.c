/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/event/event.h"
#include "perfdata/record/record.h"

#include "test.h"

/* Attrs in both byte orders, names, and the way from a record to its event. */

static const PdAttr full = {
    .type = 4,
    .size = 144,
    .config = 0x1c2,
    .sample_period = 99,
    .sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME,
    .read_format = PD_FORMAT_ID | PD_FORMAT_LOST,
    .flags = PD_ATTR_DISABLED | PD_ATTR_FREQ | PD_ATTR_SAMPLE_ID_ALL | PD_ATTR_DEFER_OUTPUT |
             1ULL << PD_ATTR_PRECISE_IP_SHIFT,
    .wakeup_events = 7,
    .bp_type = 3,
    .config1 = 0x1122334455667788,
    .config2 = 2,
    .branch_sample_type = PD_BRANCH_HW_INDEX,
    .sample_regs_user = 0xff0fff,
    .sample_stack_user = 8192,
    .clockid = -2,
    .sample_regs_intr = 5,
    .aux_watermark = 6,
    .sample_max_stack = 127,
    .aux_sample_size = 8,
    .aux_action = 1,
    .sig_data = 9,
    .config3 = 10,
    .config4 = 11,
};

static const char *name_of(PdAttr attr) {
    static Buffer b;

    buffer_clear(&b);
    pd_attr_name(&attr, &b);
    buffer_zero(&b, 1);
    return (const char *)b.data;
}

TEST(attr_survives_both_byte_orders) {
    _cleanup_(buffer_done) Buffer b = {};
    PdAttr back;

    for (int swap = 0; swap < 2; swap++) {
        buffer_clear(&b);
        pd_attr_encode(&full, 144, &b, swap);
        CHECK_EQ(b.size, 144);
        CHECK_OK(pd_attr_parse(&back, buffer_bytes(&b), swap));
        CHECK(memcmp(&back, &full, sizeof(full)) == 0);
    }
}

TEST(bit_field_of_a_big_endian_writer_is_reversed_in_each_byte) {
    uint8_t b[64] = {};
    bool swap = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    PdAttr attr;

    b[7] = 64;
    b[40] = 0x80;        /* disabled */
    b[41] = 0x20 | 0x01; /* freq, upper bit of precise_ip */
    b[45] = 0x00;
    b[44] = 0x20; /* bit 34: build_id */
    CHECK_OK(pd_attr_parse(&attr, (Bytes){b, sizeof(b)}, swap));
    CHECK_EQ(attr.size, 64);
    CHECK_EQ(attr.flags,
             PD_ATTR_DISABLED | PD_ATTR_FREQ | PD_ATTR_BUILD_ID | 2ULL << PD_ATTR_PRECISE_IP_SHIFT);
}

TEST(a_short_attr_is_refused_and_a_long_one_is_accepted) {
    uint8_t b[200] = {};
    PdAttr attr;

    memset(b, 0xff, sizeof(b));
    store_u32(b + 4, 72, false);
    CHECK_EQ(pd_attr_parse(&attr, (Bytes){b, 63}, false), -EBADMSG);
    CHECK_OK(pd_attr_parse(&attr, (Bytes){b, 200}, false));
    CHECK_EQ(attr.config2, UINT64_MAX);
    CHECK_EQ(attr.branch_sample_type, 0);
    store_u32(b + 4, UINT32_MAX, false);
    CHECK_OK(pd_attr_parse(&attr, (Bytes){b, 200}, false));
    CHECK_EQ(attr.size, UINT32_MAX);
    CHECK_EQ(attr.config4, UINT64_MAX);
}

TEST(size_needed_is_the_smallest_published_one) {
    PdAttr attr = {.size = 144, .config = 1};

    CHECK_EQ(pd_attr_size_needed(&attr), 64);
    attr.config2 = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 72);
    attr.branch_sample_type = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 80);
    attr.sample_regs_user = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 96);
    attr.clockid = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 96);
    attr.sample_regs_intr = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 104);
    attr.sample_max_stack = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 112);
    attr.aux_action = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 120);
    attr.sig_data = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 128);
    attr.config3 = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 136);
    attr.config4 = 1;
    CHECK_EQ(pd_attr_size_needed(&attr), 144);
}

TEST(event_names_are_those_of_perf) {
    /* clang-format off */
    static const struct { PdAttr attr; const char *name; } rows[] = {
        { { .type = 0, .config = 0 }, "cycles" },
        { { .type = 0, .config = 0x400000001 }, "instructions" },
        { { .type = 0, .config = 4, .flags = 3ULL << PD_ATTR_PRECISE_IP_SHIFT }, "branches:ppp" },
        { { .type = 0, .config = 99 }, "unknown-hardware" },
        { { .type = 1, .config = 1, .flags = PD_ATTR_EXCLUDE_KERNEL | PD_ATTR_EXCLUDE_HV }, "task-clock:u" },
        { { .type = 1, .config = 9, .flags = PD_ATTR_EXCLUDE_USER }, "dummy:kh" },
        { { .type = 1, .config = 11 }, "cgroup-switches" },
        { { .type = 1, .config = 10 }, "bpf-output" },
        { { .type = 1, .config = 12 }, "unknown-software" },
        { { .type = 3, .config = 0x10000 }, "L1-dcache-load-misses" },
        { { .type = 3, .config = 0x103 }, "dTLB-stores" },
        { { .type = 3, .config = 0x10202 }, "LLC-prefetch-misses" },
        { { .type = 3, .config = 0x104 }, "invalid-cache" },
        { { .type = 4, .config = 0x1c2, .flags = PD_ATTR_EXCLUDE_KERNEL }, "raw 0x1c2:uh" },
        { { .type = 5, .config1 = 0x1000, .bp_type = 3 }, "mem:0x1000:rw" },
        { { .type = 2, .config = 47 }, "tracepoint#47" },
        { { .type = 8, .config = 0x4000 }, "type 8 config 0x4000" },
        { { .type = 0, .flags = PD_ATTR_EXCLUDE_GUEST }, "cycles" },
        { { .type = 0, .flags = PD_ATTR_EXCLUDE_HOST }, "cycles:G" },
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_STREQ(name_of(rows[i].attr), rows[i].name);
}

TEST(many_ids_lead_to_their_events) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_ID};
    PdEvent *e;

    CHECK_OK(pd_events_new(&events));
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t ids[3] = {i * 3 + 1, i * 3 + 2, i * 3 + 3};

        CHECK_OK(pd_events_add(events, &attr, (Bytes){}, ids, 3, &e));
        CHECK_EQ(e->index, i);
    }
    CHECK_EQ(pd_events_count(events), 5000);
    for (uint64_t i = 0; i < 15000; i++)
        CHECK_EQ(pd_events_by_id(events, i + 1)->index, i / 3);
    CHECK(!pd_events_by_id(events, 15001));
    CHECK(!pd_events_by_id(events, 0));
    CHECK(pd_events_uniform(events));
}

TEST(a_shared_id_belongs_to_the_first_event) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_ID}, other = {.sample_type = PD_SAMPLE_IDENTIFIER};
    uint64_t id = 5;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &id, 1, NULL));
    CHECK_OK(pd_events_add(events, &other, (Bytes){}, &id, 1, NULL));
    CHECK_EQ(pd_events_by_id(events, 5)->index, 0);
    CHECK(!pd_events_uniform(events));
}

typedef struct Body {
    uint8_t bytes[256];
    uint32_t size;
} Body;

static void put(Body *b, uint64_t v, bool swap) {
    store_u64(b->bytes + b->size, v, swap);
    b->size += 8;
}

static void put_pair(Body *b, uint32_t v, uint32_t w, bool swap) {
    store_u32(b->bytes + b->size, v, swap);
    store_u32(b->bytes + b->size + 4, w, swap);
    b->size += 8;
}

static PdRecord record_of(const Body *b, uint32_t type, bool swap) {
    return (PdRecord){.type = type, .swap = swap, .size = b->size, .data = b->bytes};
}

TEST(the_stamp_of_a_sample_is_read_in_both_byte_orders) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_ADDR |
                                  PD_SAMPLE_ID | PD_SAMPLE_STREAM_ID | PD_SAMPLE_CPU};
    uint64_t ids[] = {11, 12};
    PdStamp s;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &ids[0], 1, NULL));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &ids[1], 1, NULL));
    for (int swap = 0; swap < 2; swap++) {
        Body b = {.size = 8};
        PdRecord rec;

        put(&b, 0xffff1234, swap);
        put_pair(&b, 100, 101, swap);
        put(&b, 123456789, swap);
        put(&b, 0, swap);
        put(&b, 12, swap);
        put(&b, 99, swap);
        put_pair(&b, 3, 0, swap);
        rec = record_of(&b, PD_RECORD_SAMPLE, swap);
        CHECK_OK(pd_events_stamp(events, &rec, &s));
        CHECK(s.event && s.event->index == 1);
        CHECK(s.has_id && s.has_time && s.has_tid && s.has_cpu);
        CHECK_EQ(s.id, 12);
        CHECK_EQ(s.pid, 100);
        CHECK_EQ(s.tid, 101);
        CHECK_EQ(s.time, 123456789);
        CHECK_EQ(s.cpu, 3);
        rec.size -= 8;
        CHECK_EQ(pd_events_stamp(events, &rec, &s), -EBADMSG);
    }
}

TEST(stamps_of_records_that_follow_each_other_are_those_of_each_record) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TID | PD_SAMPLE_TIME,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};
    /* An id of 13 is nobody's; a size below 32 is too short for a time. */
    static const struct {
        uint32_t type, size;
        uint64_t id;
    } rows[] = {
        {PD_RECORD_SAMPLE, 32, 11}, {PD_RECORD_SAMPLE, 32, 11}, {PD_RECORD_SAMPLE, 24, 11},
        {PD_RECORD_SAMPLE, 32, 12}, {PD_RECORD_SAMPLE, 8, 12},  {PD_RECORD_SAMPLE, 32, 13},
        {PD_RECORD_SAMPLE, 32, 11}, {PD_RECORD_LOST, 32, 11},   {PD_RECORD_SAMPLE, 32, 11},
    };
    uint64_t ids[] = {11, 12};
    PdStamp next = {}, s;

    CHECK_OK(pd_events_new(&events));
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &ids[i], 1, NULL));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        Body b = {.size = 8};
        PdRecord rec;

        put(&b, rows[i].id, false);
        put_pair(&b, (uint32_t)i, 101, false);
        put(&b, 1000 + i, false);
        rec = record_of(&b, rows[i].type, false);
        rec.size = rows[i].size;
        CHECK_EQ(pd_events_stamp_next(events, &rec, &next), pd_events_stamp(events, &rec, &s));
        CHECK(next.event == s.event);
        CHECK_EQ(next.id, s.id);
        CHECK_EQ(next.pid, s.pid);
        CHECK_EQ(next.time, s.time);
    }
}

TEST(the_stamp_of_a_trailer_is_read_in_both_byte_orders) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_STREAM_ID |
                                  PD_SAMPLE_CPU | PD_SAMPLE_IDENTIFIER,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};
    uint64_t ids[] = {11, 12};
    PdStamp s;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &ids[0], 1, NULL));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &ids[1], 1, NULL));
    CHECK_EQ(pd_events_at(events, 0)->trailer_size, 40);
    for (int swap = 0; swap < 2; swap++) {
        Body b = {.size = 8};
        PdRecord rec;

        put(&b, 0, swap); /* the body, whatever it is */
        put_pair(&b, 100, 101, swap);
        put(&b, 123456789, swap);
        put(&b, 99, swap);
        put_pair(&b, 3, 0, swap);
        put(&b, 12, swap);
        rec = record_of(&b, PD_RECORD_COMM, swap);
        CHECK_OK(pd_events_stamp(events, &rec, &s));
        CHECK(s.event && s.event->index == 1);
        CHECK_EQ(s.pid, 100);
        CHECK_EQ(s.tid, 101);
        CHECK_EQ(s.time, 123456789);
        CHECK_EQ(s.cpu, 3);
        rec.size = 16;
        CHECK_EQ(pd_events_stamp(events, &rec, &s), -EBADMSG);
        CHECK(s.event && !s.has_time);
    }
}

TEST(a_record_of_perf_itself_has_an_empty_stamp) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_TIME};
    Body b = {.size = 24};
    PdRecord rec = record_of(&b, PD_RECORD_FINISHED_ROUND, false);
    PdStamp s;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, NULL, 0, NULL));
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(!s.event && !s.has_time);
    rec.type = PD_RECORD_SAMPLE;
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(s.event && s.has_time);
}

TEST(with_a_single_event_any_id_belongs_to_it) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.sample_type = PD_SAMPLE_ID};
    uint64_t id = 1;
    Body b = {.size = 8};
    PdRecord rec;
    PdStamp s;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &id, 1, NULL));
    put(&b, 77, false);
    rec = record_of(&b, PD_RECORD_SAMPLE, false);
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(s.event && s.id == 77);
    id = 2;
    CHECK_OK(pd_events_add(events, &attr, (Bytes){}, &id, 1, NULL));
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(!s.event && s.has_id && s.id == 77);
    store_u64(b.bytes + 8, 0, false);
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(s.event && s.event->index == 0);
}

TEST(an_id_counts_only_at_the_position_of_its_event) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr first = {.sample_type = PD_SAMPLE_ID | PD_SAMPLE_IP},
           second = {.sample_type = PD_SAMPLE_ID | PD_SAMPLE_IP | PD_SAMPLE_TIME};
    uint64_t ids[] = {11, 12};
    Body b = {.size = 8};
    PdRecord rec;
    PdStamp s;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &first, (Bytes){}, &ids[0], 1, NULL));
    CHECK_OK(pd_events_add(events, &second, (Bytes){}, &ids[1], 1, NULL));
    put(&b, 1, false);
    put(&b, 5, false);
    put(&b, 12, false);
    rec = record_of(&b, PD_RECORD_SAMPLE, false);
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(s.event && s.event->index == 1);
    CHECK_EQ(s.time, 5);
    store_u64(b.bytes + 16, 11, false);
    CHECK_OK(pd_events_stamp(events, &rec, &s));
    CHECK(s.event && s.event->index == 0);
}

TEST(a_given_name_replaces_the_derived_one) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    PdAttr attr = {.type = 1};
    PdEvent *e;

    CHECK_OK(pd_events_new(&events));
    CHECK_OK(pd_events_add(events, &attr, (Bytes){(const uint8_t *)"x", 1}, NULL, 0, &e));
    CHECK_STREQ(e->name, "cpu-clock");
    CHECK(!e->name_given);
    CHECK_OK(pd_events_set_name(events, e, (Bytes){(const uint8_t *)"", 1}));
    CHECK(!e->name_given);
    CHECK_OK(pd_events_set_name(events, e, (Bytes){(const uint8_t *)"sched:x\0y", 9}));
    CHECK_STREQ(e->name, "sched:x");
    CHECK(e->name_given);
}

TEST(an_attr_is_described_in_the_words_of_the_format) {
    _cleanup_(buffer_done) Buffer b = {};
    PdAttr attr = {.type = 1,
                   .size = 64,
                   .sample_period = 99,
                   .sample_type = 0x8000000000000007,
                   .flags = PD_ATTR_FREQ | PD_ATTR_MMAP | 1ULL << 63,
                   .wakeup_events = 1};
    Fields f = fields_to(&b, FIELDS_JSON);

    fields_begin_object(&f, NULL);
    pd_attr_describe(&attr, &f);
    fields_end_object(&f);
    buffer_zero(&b, 1);
    CHECK_STREQ((char *)b.data,
                "{\"type\":1,\"config\":0,\"attr_size\":64,\"sample_freq\":99,"
                "\"sample_type\":9223372036854775815,"
                "\"sample_fields\":[\"IP\",\"TID\",\"TIME\",\"0x8000000000000000\"],"
                "\"read_format\":[],\"flags\":[\"mmap\",\"freq\",\"0x8000000000000000\"],"
                "\"wakeup_events\":1}");
}

TEST_MAIN()
