/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/file/filter.h"

#include "make-record.h"
#include "test.h"

/* The records that a filter keeps and drops, record by record. */

enum { CLOCK = 10, FAULTS = 20, DUMMY = 30 };

/* A bit that no sample_type has, for bench_init(). */
static const uint64_t without_trailer = UINT64_C(1) << 63;

typedef struct Bench {
    PdEvents *events;
    Filter filter;
    OptionWords words;
} Bench;

static void bench_done(Bench *b) {
    filter_done(&b->filter);
    b->events = pd_events_free(b->events);
}

static void add_event(Bench *b, uint64_t id, const char *name, uint64_t flags, uint64_t extra) {
    bool has_trailer = !(extra & without_trailer);
    PdAttr attr = {.size = 128,
                   .sample_type =
                       PD_SAMPLE_IDENTIFIER | PD_SAMPLE_TIME | (extra & ~without_trailer),
                   .read_format = extra & PD_SAMPLE_READ ? PD_FORMAT_GROUP | PD_FORMAT_ID : 0,
                   .flags = flags | (has_trailer ? PD_ATTR_SAMPLE_ID_ALL : 0)};
    PdEvent *event;

    assert(pd_events_add(b->events, &attr, (Bytes){}, &id, 1, &event) == 0);
    assert(pd_events_set_name(b->events, event,
                              (Bytes){.data = (const uint8_t *)name, .size = strlen(name)}) == 0);
}

static void bench_init(Bench *b, uint64_t extra) {
    assert(pd_events_new(&b->events) == 0);
    add_event(b, CLOCK, "cpu-clock:u", 0, extra);
    add_event(b, FAULTS, "page-faults", 0, extra);
    add_event(b, DUMMY, "dummy", PD_ATTR_COMM | PD_ATTR_MMAP2, extra);
}

static int begin(Bench *b, const char *word) {
    static char *items[1];
    const char *why = NULL;

    items[0] = (char *)word;
    b->words = (OptionWords){.items = items, .n = word ? 1 : 0};
    b->filter.names = &b->words;
    return filter_begin(&b->filter, b->events, &why);
}

static void span(Bench *b, uint64_t since, uint64_t until) {
    b->filter.by_time = true;
    b->filter.since = since;
    b->filter.until = until;
}

/* SAMPLE is id and time, the others have them in their trailer behind two words. */
static int pass(Bench *b, uint32_t type, uint64_t id, uint64_t time, PdRecord *ret) {
    static Make m;
    PdStamp stamp = {};

    buffer_clear(&m.body);
    if (type == PD_RECORD_SAMPLE) {
        u64(&m, id);
        u64(&m, time);
    } else {
        u64(&m, id);
        u64(&m, 7);
        u64(&m, time);
        u64(&m, id);
    }
    *ret = make_record(&m, type, 0);
    (void)pd_events_stamp(b->events, ret, &stamp);
    return filter_record(&b->filter, ret, &stamp);
}

TEST(samples_from_since_up_to_until_are_kept) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, 0);
    CHECK_OK(begin(&b, NULL));
    span(&b, 100, 200);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 99, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 100, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 199, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 200, &r), 0);
    CHECK_EQ(b.filter.first_time, 100U);
    CHECK_EQ(b.filter.last_time, 199U);
}

TEST(losses_of_the_window_and_all_side_band_before_it_are_kept) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, 0);
    CHECK_OK(begin(&b, NULL));
    span(&b, 100, 200);
    CHECK_EQ(pass(&b, PD_RECORD_LOST, CLOCK, 99, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_LOST, CLOCK, 150, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_LOST_SAMPLES, CLOCK, 99, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_LOST_SAMPLES, CLOCK, 0, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_COMM, DUMMY, 0, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_COMM, DUMMY, 99, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_EXIT, DUMMY, 200, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_FINISHED_ROUND, 0, 0, &r), 1);
}

TEST(an_event_is_selected_without_its_modifier_and_unused_attrs_are_dropped) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, 0);
    CHECK_OK(begin(&b, "cpu-clock"));
    CHECK_EQ(pd_events_count(b.filter.kept), 2U);
    CHECK_EQ(b.filter.new_index[0], 0U);
    CHECK_EQ(b.filter.new_index[1], UINT32_MAX);
    CHECK_EQ(b.filter.new_index[2], 1U);
    CHECK_STREQ(pd_events_at(b.filter.kept, 1)->name, "dummy");
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 1, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, FAULTS, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, DUMMY, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, 77, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_COMM, DUMMY, 1, &r), 1);
}

TEST(loss_of_a_dropped_event_is_moved_to_another_event) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, 0);
    CHECK_OK(begin(&b, "cpu-*"));
    CHECK_EQ(pass(&b, PD_RECORD_LOST, FAULTS, 5, &r), 1);
    CHECK_EQ(load_u64(r.data + 8, false), CLOCK);
    CHECK_EQ(load_u64(r.data + 16, false), 7U);
    CHECK_EQ(load_u64(r.data + 24, false), 5U);
    CHECK_EQ(load_u64(r.data + 32, false), CLOCK);
    CHECK_EQ(pass(&b, PD_RECORD_LOST_SAMPLES, FAULTS, 5, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_STAT, FAULTS, 0, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_STAT, CLOCK, 0, &r), 1);
}

/* perf record writes the processes that it finds with an id of 0, which the first event lends. */
TEST(side_band_of_a_tool_is_kept_if_the_first_event_is_dropped) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, 0);
    CHECK_OK(begin(&b, "page-faults"));
    CHECK_EQ(b.filter.new_index[0], UINT32_MAX);
    CHECK_EQ(pass(&b, PD_RECORD_COMM, 0, 0, &r), 1);
    CHECK_EQ(load_u64(r.data + 32, false), 0U);
    CHECK_EQ(pass(&b, PD_RECORD_MMAP2, 0, 0, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, 0, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_AUX, CLOCK, 1, &r), 0);
}

/* Before sample_id_all, only samples had an id. */
TEST(side_band_without_a_trailer_is_kept_if_the_first_event_is_dropped) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, without_trailer);
    CHECK_OK(begin(&b, "page-faults"));
    CHECK_EQ(b.filter.new_index[0], UINT32_MAX);
    CHECK_EQ(pass(&b, PD_RECORD_COMM, FAULTS, 1, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_MMAP, CLOCK, 1, &r), 1);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, FAULTS, 1, &r), 1);
}

TEST(all_attrs_are_kept_if_events_read_each_other) {
    _cleanup_(bench_done) Bench b = {};
    PdRecord r;

    bench_init(&b, PD_SAMPLE_READ);
    CHECK_OK(begin(&b, "page-faults"));
    CHECK_EQ(pd_events_count(b.filter.kept), 3U);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, CLOCK, 1, &r), 0);
    CHECK_EQ(pass(&b, PD_RECORD_SAMPLE, FAULTS, 1, &r), 1);
}

TEST(a_name_that_no_event_has_is_an_error) {
    _cleanup_(bench_done) Bench b = {};

    bench_init(&b, 0);
    CHECK_EQ(begin(&b, "cycles"), -ENOENT);
}

TEST_MAIN()
