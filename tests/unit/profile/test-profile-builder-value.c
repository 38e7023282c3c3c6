/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-recording.h"
#include "profile/profile-builder.h"

/* Samples of a group with the values of its counters, of a recording that profd or perf made. */

#define VALUE_TYPE                                                                                 \
    (PD_SAMPLE_IDENTIFIER | PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_PERIOD |     \
     PD_SAMPLE_READ)

enum { LEADER = 21, MEMBER = 22, LEADER_OF_CPU_1 = 31, MEMBER_OF_CPU_1 = 32 };

static const uint64_t leader_ids[] = {LEADER, LEADER_OF_CPU_1},
                      member_ids[] = {MEMBER, MEMBER_OF_CPU_1};
static const uint64_t day = UINT64_C(86400000000000);

typedef struct Made {
    Buffer records;
    Bytes file;
    uint64_t no_period; /* 0, or PD_SAMPLE_PERIOD: samples have none */
    uint64_t flags;
    PdReader *reader;
    ProfileBuilder *builder;
    Profile *profile;
} Made;

static void made_done(Made *m) {
    profile_free(m->profile);
    profile_builder_free(m->builder);
    pd_reader_free(m->reader);
    buffer_done(&m->records);
    free((void *)m->file.data);
}

/* A sample of the leader of a CPU. */
static void put_values(Made *m, const uint64_t leader_id, uint64_t time, uint64_t period,
                       uint64_t leader, uint64_t member) {
    uint16_t size = m->no_period ? 80 : 88;

    put_header(&m->records, PD_RECORD_SAMPLE, PD_MISC_USER, size, false);
    buffer_u64(&m->records, leader_id, false);
    buffer_u64(&m->records, 0x401000, false);
    buffer_u32(&m->records, 7, false);
    buffer_u32(&m->records, 7, false);
    buffer_u64(&m->records, time, false);
    if (!m->no_period)
        buffer_u64(&m->records, period, false);
    buffer_u64(&m->records, 2, false);
    buffer_u64(&m->records, leader, false);
    buffer_u64(&m->records, leader_id, false);
    buffer_u64(&m->records, member, false);
    buffer_u64(&m->records, leader_id + 1, false);
}

static int write_events(const Made *m, PdWriter *writer) {
    PdEvent event = {.attr = {.type = PD_TYPE_SOFTWARE,
                              .sample_type = VALUE_TYPE & ~m->no_period,
                              .sample_period = 1000,
                              .read_format = PD_FORMAT_ID | PD_FORMAT_GROUP,
                              .flags = PD_ATTR_SAMPLE_ID_ALL | m->flags},
                     .ids = (uint64_t *)leader_ids,
                     .n_ids = ARRAY_SIZE(leader_ids),
                     .scale = 1};
    int r = pd_writer_add_event(writer, &event);

    event.attr.sample_period = 0;
    event.attr.config = 2;
    event.ids = (uint64_t *)member_ids;
    return r < 0 ? r : pd_writer_add_event(writer, &event);
}

/* The recording has the version of this recorder. */
static int write_recording(Made *m, const char *recorder, PdLayout layout) {
    _cleanup_close_ int fd = memory_file();
    _cleanup_(pd_writer_freep) PdWriter *writer = NULL;
    PdEnvironment environment = {.has = {[PD_FEATURE_VERSION] = true}, .version = (char *)recorder};
    int r = pd_writer_new(fd, &(PdWriterOptions){.layout = layout}, &writer);

    if (r == 0)
        r = write_events(m, writer);
    if (r == 0)
        r = pd_writer_set_environment(writer, &environment);
    if (r == 0)
        r = pd_writer_begin(writer);
    if (r == 0)
        r = pd_writer_write(writer, 0, m->records.data, m->records.size);
    if (r == 0)
        r = pd_writer_finish(writer);
    if (r == 0)
        m->file = whole_file(fd);
    return r;
}

static int make(Made *m, const char *recorder, PdLayout layout, const ProfileOptions *options) {
    PdDamage why;
    int r = buffer_error(&m->records);

    if (r == 0)
        r = write_recording(m, recorder, layout);
    if (r == 0)
        r = pd_reader_open_memory(m->file, NULL, &m->reader, &why);
    if (r == 0)
        r = profile_builder_new(options, &m->builder);
    if (r == 0)
        r = profile_builder_begin(m->builder, m->reader);
    if (r == 0)
        r = profile_builder_read(m->builder);
    return r == 0 ? profile_builder_take(m->builder, &m->profile) : r;
}

/* Zeros where the profile does not have the event. */
static ProfileEvent event_of(const Profile *p, const char *name) {
    for (size_t i = 0; i < p->n_events; i++)
        if (bytes_equal_str(text_set_get(p->texts, p->events[i].name), name))
            return p->events[i];
    return (ProfileEvent){};
}

static const ProfileOptions all = {.keys = 1 << PROFILE_EVENT};

static void put_loss(Made *m, PdRecordType type, uint64_t lost, uint32_t thread, uint64_t time) {
    bool is_of_ring = type == PD_RECORD_LOST;

    put_header(&m->records, type, 0, is_of_ring ? 48 : 40, false);
    if (is_of_ring)
        buffer_u64(&m->records, LEADER, false);
    buffer_u64(&m->records, lost, false);
    buffer_u32(&m->records, thread, false);
    buffer_u32(&m->records, thread, false);
    buffer_u64(&m->records, time, false);
    buffer_u64(&m->records, LEADER, false);
}

/* 20 samples by a LOST record, and 23 by the count of a thread. */
static void check_lost(const char *recorder, uint32_t thread, uint64_t lost) {
    _cleanup_(made_done) Made m = {};

    put_values(&m, LEADER, 10, 1000, 1000, 70);
    put_loss(&m, PD_RECORD_LOST, 20, 7, 11);
    put_loss(&m, PD_RECORD_LOST_SAMPLES, 23, thread, 12);
    CHECK_OK(make(&m, recorder, PD_LAYOUT_FILE, &all));
    CHECK_EQ(m.profile->lost, lost);
}

TEST(what_profd_counts_as_lost_has_the_lost_records_in_it) {
    check_lost("profd 1.2.3", 0, 23);
}

TEST(what_the_hardware_lost_is_lost_besides) {
    check_lost("profd 1.2.3", 7, 43);
    check_lost("6.1.0", 0, 43);
}

/* Two CPUs, after a day. */
static void put_day(Made *m) {
    put_values(m, LEADER, 10, 1000, day, 3 * day);
    put_values(m, LEADER_OF_CPU_1, 11, 1010, day / 2, day);
    put_values(m, LEADER, 20, 1000, day + 1001, 3 * day + 70);
    put_values(m, LEADER_OF_CPU_1, 21, 1010, day / 2 + 1012, day);
}

TEST(the_past_of_a_counter_is_no_period_of_a_sample_that_profd_recorded) {
    static const PdLayout layouts[] = {PD_LAYOUT_FILE, PD_LAYOUT_PIPE};

    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        _cleanup_(made_done) Made m = {};
        ProfileEvent leader, member;

        put_day(&m);
        CHECK_OK(make(&m, "profd 1.2.3", layouts[i], &all));
        leader = event_of(m.profile, "cpu-clock");
        member = event_of(m.profile, "page-faults");
        CHECK_EQ(leader.samples, 4);
        CHECK_EQ(leader.period, 1000 + 1010 + 1001 + 1012);
        CHECK_EQ(member.samples, 1);
        CHECK_EQ(member.period, 70);
    }
}

TEST(periods_of_a_recording_of_perf_are_those_of_perf_report) {
    _cleanup_(made_done) Made m = {};

    put_day(&m);
    CHECK_OK(make(&m, "6.1.176", PD_LAYOUT_FILE, &all));
    CHECK_EQ(event_of(m.profile, "cpu-clock").samples, 4);
    CHECK_EQ(event_of(m.profile, "cpu-clock").period, day + day / 2 + 1001 + 1012);
    CHECK_EQ(event_of(m.profile, "page-faults").samples, 3);
    CHECK_EQ(event_of(m.profile, "page-faults").period, 4 * day + 70);
}

TEST(values_of_a_group_that_begins_in_the_recording_count_from_zero) {
    _cleanup_(made_done) Made m = {};

    put_values(&m, LEADER, 10, 1000, 1003, 50);
    put_values(&m, LEADER, 20, 1000, 2004, 70);
    CHECK_OK(make(&m, "profd 1.2.3", PD_LAYOUT_FILE, &all));
    CHECK_EQ(event_of(m.profile, "cpu-clock").period, 2004);
    CHECK_EQ(event_of(m.profile, "page-faults").samples, 2);
    CHECK_EQ(event_of(m.profile, "page-faults").period, 70);
}

TEST(a_sample_before_the_window_is_the_begin_of_the_first_period) {
    _cleanup_(made_done) Made m = {};
    ProfileOptions options = all;

    options.filter.since_ns = 20;
    options.filter.until_ns = 30;
    put_day(&m);
    CHECK_OK(make(&m, "profd 1.2.3", PD_LAYOUT_FILE, &options));
    CHECK_EQ(event_of(m.profile, "cpu-clock").samples, 2);
    CHECK_EQ(event_of(m.profile, "cpu-clock").period, 1001 + 1012);
    CHECK_EQ(event_of(m.profile, "page-faults").period, 70);
}

TEST(a_frequency_is_no_period) {
    _cleanup_(made_done) Made fixed = {.no_period = PD_SAMPLE_PERIOD},
                              often = {.no_period = PD_SAMPLE_PERIOD, .flags = PD_ATTR_FREQ};

    put_values(&fixed, LEADER, 10, 0, day, day);
    CHECK_OK(make(&fixed, "profd 1.2.3", PD_LAYOUT_FILE, &all));
    CHECK_EQ(event_of(fixed.profile, "cpu-clock").period, 1000);
    put_values(&often, LEADER, 10, 0, day, day);
    put_values(&often, LEADER, 20, 0, day + 5, day + 6);
    CHECK_OK(make(&often, "profd 1.2.3", PD_LAYOUT_FILE, &all));
    CHECK_EQ(event_of(often.profile, "cpu-clock").samples, 1);
    CHECK_EQ(event_of(often.profile, "cpu-clock").period, 5);
    CHECK_EQ(event_of(often.profile, "page-faults").period, 6);
}

TEST_MAIN()
