/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "make-container.h"
#include "util/file.h"

#include "test.h"

/* Every container in both byte orders, whole and damaged. */

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

TEST(a_feature_above_the_limit_is_skipped) {
    _cleanup_(buffer_done) Buffer file = make_file(&(FileShape){.data_size = UINT64_MAX});
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    PdReaderLimits limits = {.feature_bytes = 67};
    Bytes body;

    CHECK_OK(pd_reader_open_memory(buffer_bytes(&file), &limits, &r, NULL));
    CHECK_EQ(pd_reader_feature(r, PD_FEATURE_HOSTNAME, &body), -EFBIG);
}

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

static int write_file(int folder, const char *name, Bytes bytes) {
    _cleanup_close_ int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    return fd < 0 ? -errno : file_write_all(fd, bytes.data, bytes.size);
}

static const char *const folder_names[] = {"data",    "data.2", "data.10", "data.0",
                                           "data.02", "data.x", "data.3",  "other"};

static void remove_folder(const char *path, int folder) {
    for (size_t i = 0; i < ARRAY_SIZE(folder_names); i++)
        (void)unlinkat(folder, folder_names[i], 0);
    (void)unlinkat(folder, "data.4", AT_REMOVEDIR);
    (void)rmdir(path);
}

TEST(directory_is_read_in_the_order_of_its_numbers) {
    char path[] = "/tmp/test-perfdata-reader-XXXXXX";
    _cleanup_(buffer_done) Buffer own = {}, file = {};
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_close_ int folder = -1;
    bool swap = true;
    uint64_t time = 0;
    unsigned n = 0;
    uint32_t parts = 0;
    PdRecord rec;
    PdStamp s;

    CHECK(mkdtemp(path));
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    own = make_samples(swap, 1);
    file = make_file(
        &(FileShape){.swap = swap, .data_size = UINT64_MAX, .records = buffer_bytes(&own)});
    for (size_t i = 0; i < ARRAY_SIZE(folder_names); i++) {
        Maker m = {.swap = swap}, plain = {.swap = swap};
        static const unsigned base[] = {0, 40, 60, 20, 0, 0, 50, 0};

        for (unsigned k = 0; k < 3; k++)
            put_sample(&plain, 11, 2000 + base[i] + k);
        put_stream(&m, PD_RECORD_COMPRESSED, buffer_bytes(&plain.b), 30, false);
        if (base[i] == 50) /* its last record is cut off */
            m.b.size -= 3;
        CHECK_OK(
            write_file(folder, folder_names[i], i == 0 ? buffer_bytes(&file) : buffer_bytes(&m.b)));
        buffer_done(&m.b);
        buffer_done(&plain.b);
    }
    CHECK_OK(mkdirat(folder, "data.4", 0700));
    CHECK_OK(pd_reader_open(path, NULL, &r, NULL));
    CHECK_EQ(pd_reader_header(r)->mode, PD_MODE_DIRECTORY);
    CHECK_EQ(pd_reader_header(r)->n_files, 6);
    for (int pass = 0; pass < 2; pass++) {
        for (n = 0, parts = 0, time = 0; pd_reader_next(r, &rec) > 0; n++) {
            CHECK_OK(pd_events_stamp(pd_reader_events(r), &rec, &s));
            CHECK(s.time > time);
            time = s.time;
            parts |= 1U << rec.file;
        }
        CHECK_EQ(n, 1 + 3 + 3 + 3 + 2);
        CHECK_EQ(parts, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5);
        CHECK(strstr(pd_reader_damage(r)->text, "cut off"));
        CHECK_EQ(pd_reader_damage(r)->file, 3);
        CHECK_OK(pd_reader_rewind(r));
    }
    r = pd_reader_free(r);
    CHECK_OK(unlinkat(folder, "data", 0));
    CHECK_EQ(pd_reader_open(path, NULL, &r, NULL), -EBADMSG);
    remove_folder(path, folder);
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
