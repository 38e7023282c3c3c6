/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <time.h>

#include "make-container.h"
#include "test.h"

/* Records of a pipe that describe the recording, in whatever order and number they come. */

TEST(event_update_sets_name_scale_and_unit) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Maker m = {};
    _cleanup_(buffer_done) Buffer pipe = {};
    const PdEvent *e;
    double scale = 0.25;
    Seen seen;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_header_attr(&m, 12);
    put_head(&m, PD_RECORD_EVENT_UPDATE, 0, 32);
    buffer_u64(&m.b, PD_EVENT_UPDATE_NAME, false);
    buffer_u64(&m.b, 12, false);
    put_text(&m, "watts", 8);
    put_head(&m, PD_RECORD_EVENT_UPDATE, 0, 32);
    buffer_u64(&m.b, PD_EVENT_UPDATE_UNIT, false);
    buffer_u64(&m.b, 12, false);
    put_text(&m, "W", 8);
    put_head(&m, PD_RECORD_EVENT_UPDATE, 0, 32);
    buffer_u64(&m.b, PD_EVENT_UPDATE_SCALE, false);
    buffer_u64(&m.b, 12, false);
    buffer_append(&m.b, &scale, 8);
    pipe = m.b;
    CHECK_OK(open_buffer(&pipe, &r));
    CHECK_OK(read_all(r, &seen));
    e = pd_events_at(pd_reader_events(r), 1);
    CHECK_STREQ(e->name, "watts");
    CHECK_STREQ(e->unit, "W");
    CHECK(e->scale == 0.25);
    CHECK_STREQ(pd_events_at(pd_reader_events(r), 0)->name, "dummy");
}

TEST(build_ids_of_a_pipe_make_a_section) {
    _cleanup_(buffer_done) Buffer whole = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Maker m = {};
    Bytes body;
    Seen seen;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    for (unsigned i = 0; i < 2; i++) {
        put_head(&m, PD_RECORD_BUILD_ID, PD_MISC_USER, 44);
        buffer_zero(&m.b, 28);
        put_text(&m, "libc.so", 8);
    }
    put_head(&m, PD_RECORD_BUILD_ID, PD_MISC_USER, 16); /* too short to be one */
    buffer_zero(&m.b, 8);
    whole = m.b;
    CHECK_OK(open_buffer(&whole, &r));
    CHECK_OK(read_all(r, &seen));
    CHECK_EQ(seen.records, 4);
    CHECK_OK(pd_reader_feature(r, PD_FEATURE_BUILD_ID, &body));
    CHECK_EQ(body.size, 88);
    CHECK(!pd_reader_has_feature(r, PD_FEATURE_BUILD_ID));
    CHECK(strstr(pd_reader_damage(r)->text, "BUILD_ID"));
    CHECK_EQ(pd_reader_damage(r)->offset, PD_PIPE_HEADER_SIZE + 80 + 88);
}

TEST(tracing_data_of_a_pipe_is_kept_and_returned) {
    _cleanup_(buffer_done) Buffer whole = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    Maker m = {};
    uint8_t bytes[64];
    PdRecord rec;
    Bytes body;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    put_head(&m, PD_RECORD_TRACING_DATA, 0, 12);
    buffer_u32(&m.b, 13, false);
    put_text(&m, "it is no blob", 16);
    put_sample(&m, 11, 1000);
    whole = m.b;
    CHECK_OK(open_buffer(&whole, &r));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_feature(r, PD_FEATURE_TRACING_DATA, &body), -ENOENT);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_TRACING_DATA);
    CHECK_EQ(rec.payload, 16);
    CHECK_EQ(load_u32(rec.data + 8, false), 13);
    CHECK_OK(pd_reader_feature(r, PD_FEATURE_TRACING_DATA, &body));
    CHECK(bytes_equal_str(body, "it is no blob"));
    CHECK_EQ(pd_reader_payload(r, bytes, sizeof(bytes)), 13);
    CHECK(memcmp(bytes, "it is no blob", 13) == 0);
    CHECK_EQ(pd_reader_payload(r, bytes, sizeof(bytes)), 3);
    CHECK_EQ(pd_reader_payload(r, bytes, sizeof(bytes)), 0);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_SAMPLE);
    CHECK(!pd_reader_has_feature(r, PD_FEATURE_TRACING_DATA));
}

static void put_tracepoint_attr(Maker *m, uint64_t config) {
    PdAttr attr = event_attr;

    attr.type = PD_TYPE_TRACEPOINT;
    attr.config = config;
    put_head(m, PD_RECORD_HEADER_ATTR, 0, 8 + 64 + 8);
    pd_attr_encode(&attr, 64, &m->b, false);
    buffer_u64(&m->b, 11, false);
}

static void put_format(Buffer *b, uint32_t id) {
    char text[64];
    int n = snprintf(text, sizeof(text), "name: exec%u\nID: %u\nformat:\n", id, id);

    buffer_u64(b, (uint64_t)n, false);
    buffer_append(b, text, (size_t)n);
}

/* The tracepoints 1 to n of a system, "sched:exec1" and so on. */
static void put_tracing_data(Maker *m, uint32_t n) {
    _cleanup_(buffer_done) Buffer blob = {};

    buffer_append(&blob, "\x17\x08\x44tracing0.6\0\0\x08", 16);
    buffer_u32(&blob, 4096, false);
    buffer_append(&blob, "header_page", 12);
    buffer_u64(&blob, 0, false);
    buffer_append(&blob, "header_event", 13);
    buffer_u64(&blob, 0, false);
    buffer_u32(&blob, 0, false);
    buffer_u32(&blob, 1, false);
    buffer_append(&blob, "sched", 6);
    buffer_u32(&blob, n, false);
    for (uint32_t id = 1; id <= n; id++)
        put_format(&blob, id);
    buffer_zero(&blob, ALIGN8(blob.size) - blob.size);
    put_head(m, PD_RECORD_TRACING_DATA, 0, 12);
    buffer_u32(&m->b, (uint32_t)blob.size, false);
    buffer_append(&m->b, blob.data, blob.size);
}

/* Describes no event. */
static void put_empty_event_desc(Maker *m) {
    _cleanup_(buffer_done) Buffer body = {};

    buffer_u32(&body, 0, false);
    buffer_u32(&body, 64, false);
    put_feature(m, PD_FEATURE_EVENT_DESC, buffer_bytes(&body));
}

static void put_both_event_descs(Maker *m) {
    _cleanup_(buffer_done) Buffer body = {};

    put_event_desc(&body, false);
    put_feature(m, PD_FEATURE_EVENT_DESC, buffer_bytes(&body));
}

/* A: attr, T: tracing data, E: an EVENT_DESC without names, D: one with a name for the event. */
TEST(a_tracepoint_is_named_in_whatever_order_its_records_come) {
    static const char *const orders[][2] = {
        {"AT", "sched:exec2"},  {"AET", "sched:exec2"}, {"ATE", "sched:exec2"},
        {"TAE", "sched:exec2"}, {"EAT", "sched:exec2"}, {"AD", "first"},
        {"DAT", "first"},       {"ATD", "first"},       {"ADT", "first"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        Maker m = {};
        Seen seen;

        put_pipe_header(&m);
        for (const char *what = orders[i][0]; *what; what++)
            if (*what == 'A')
                put_tracepoint_attr(&m, 2);
            else if (*what == 'T')
                put_tracing_data(&m, 3);
            else if (*what == 'E')
                put_empty_event_desc(&m);
            else
                put_both_event_descs(&m);
        CHECK_OK(open_buffer(&m.b, &r));
        CHECK_OK(read_all(r, &seen));
        CHECK_STREQ(pd_events_at(pd_reader_events(r), 0)->name, orders[i][1]);
        buffer_done(&m.b);
    }
}

/* Neither reads the other again and again while a tracepoint stays without a name. */
TEST(many_descriptions_of_events_take_little_time) {
    for (unsigned reverse = 0; reverse < 2; reverse++) {
        _cleanup_(pd_reader_freep) PdReader *r = NULL;
        clock_t start = clock();
        Maker m = {};
        Seen seen;

        put_pipe_header(&m);
        put_tracepoint_attr(&m, UINT32_MAX);
        if (reverse) {
            _cleanup_(buffer_done) Buffer body = {};

            buffer_u32(&body, 400, false);
            buffer_u32(&body, 64, false);
            for (unsigned i = 0; i < 400; i++) {
                pd_attr_encode(&event_attr, 64, &body, false);
                buffer_u32(&body, 0, false);
                put_string_feature(&body, "name", false);
            }
            put_feature(&m, PD_FEATURE_EVENT_DESC, buffer_bytes(&body));
        } else
            put_tracing_data(&m, 5000);
        for (unsigned i = 0; i < (reverse ? 100000U : 20000U); i++)
            if (reverse)
                put_tracing_data(&m, 1);
            else
                put_empty_event_desc(&m);
        CHECK_OK(open_buffer(&m.b, &r));
        CHECK_OK(read_all(r, &seen));
        CHECK(!pd_reader_damage(r));
        CHECK((clock() - start) / CLOCKS_PER_SEC < 2);
        buffer_done(&m.b);
    }
}

TEST_MAIN()
