/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/profile-builder.h"

#include "make-recording.h"

/* Small recordings of one process, as a pipe, become profiles. */

#define CHAIN_TYPE                                                                                 \
    (PD_SAMPLE_IP | PD_SAMPLE_TID | PD_SAMPLE_TIME | PD_SAMPLE_CPU | PD_SAMPLE_PERIOD |            \
     PD_SAMPLE_CALLCHAIN)

#define USER     ((uint64_t)-512)
#define KERNEL   ((uint64_t)-128)
#define DEFERRED ((uint64_t)-640)

enum { PID = 7, CODE = 0x400000, CODE_SIZE = 0x100000, ALL_KEYS = (1 << PROFILE_KEYS) - 1 };

typedef struct Made {
    Buffer bytes;
    PdReader *reader;
    ProfileBuilder *builder;
    Profile *profile;
} Made;

static void made_done(Made *m) {
    profile_free(m->profile);
    profile_builder_free(m->builder);
    pd_reader_free(m->reader);
    buffer_done(&m->bytes);
}

static void put_trailer(Buffer *b, uint64_t time) {
    buffer_u32(b, PID, false);
    buffer_u32(b, PID, false);
    buffer_u64(b, time, false);
    buffer_u64(b, 0, false);
}

static void begin(Made *m, uint64_t more_type, uint64_t branch_type) {
    PdAttr attr = {.type = 1,
                   .sample_type = CHAIN_TYPE | more_type,
                   .sample_period = 1000,
                   .branch_sample_type = branch_type,
                   .flags = PD_ATTR_SAMPLE_ID_ALL};

    buffer_u64(&m->bytes, PD_MAGIC_2, false);
    buffer_u64(&m->bytes, PD_PIPE_HEADER_SIZE, false);
    put_header(&m->bytes, PD_RECORD_HEADER_ATTR, 0, PD_RECORD_HEADER_SIZE + 128 + 8, false);
    pd_attr_encode(&attr, 128, &m->bytes, false);
    buffer_u64(&m->bytes, 5, false);
    put_header(&m->bytes, PD_RECORD_COMM, 0, 16 + 8 + 24, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_append(&m->bytes, "shop\0\0\0", 8);
    put_trailer(&m->bytes, 1);
    put_header(&m->bytes, PD_RECORD_MMAP2, PD_MISC_USER, 8 + 64 + 16 + 24, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u64(&m->bytes, CODE, false);
    buffer_u64(&m->bytes, CODE_SIZE, false);
    buffer_u64(&m->bytes, 0x1000, false);
    buffer_zero(&m->bytes, 24);
    buffer_u32(&m->bytes, 5, false);
    buffer_u32(&m->bytes, 2, false);
    buffer_append(&m->bytes, "/bin/shop\0\0\0\0\0\0", 16);
    put_trailer(&m->bytes, 2);
}

static void put_words(Made *m, uint16_t misc, uint64_t time, uint64_t ip, uint64_t period,
                      const uint64_t *chain, size_t n, size_t room) {
    put_header(&m->bytes, PD_RECORD_SAMPLE, misc, (uint16_t)(8 + 48 + n * 8 + room), false);
    buffer_u64(&m->bytes, ip, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u64(&m->bytes, time, false);
    buffer_u64(&m->bytes, 3, false);
    buffer_u64(&m->bytes, period, false);
    buffer_u64(&m->bytes, n, false);
    for (size_t i = 0; i < n; i++)
        buffer_u64(&m->bytes, chain[i], false);
}

static void put_thread(Made *m, uint32_t tid, uint64_t time, uint64_t ip) {
    put_header(&m->bytes, PD_RECORD_SAMPLE, PD_MISC_USER, 8 + 48, false);
    buffer_u64(&m->bytes, ip, false);
    buffer_u32(&m->bytes, PID, false);
    buffer_u32(&m->bytes, tid, false);
    buffer_u64(&m->bytes, time, false);
    buffer_u64(&m->bytes, 3, false);
    buffer_u64(&m->bytes, 10, false);
    buffer_u64(&m->bytes, 0, false);
}

#define put_chain(m, misc, time, ip, ...)                                                          \
    do {                                                                                           \
        const uint64_t words[] = {__VA_ARGS__};                                                    \
        put_words((m), (misc), (time), (ip), 10, words, ARRAY_SIZE(words), 0);                     \
    } while (0)

static int make(Made *m, const ProfileOptions *options) {
    PdDamage why;
    int r = buffer_error(&m->bytes);

    if (r == 0)
        r = pd_reader_open_memory((Bytes){.data = m->bytes.data, .size = m->bytes.size}, NULL,
                                  &m->reader, &why);
    if (r == 0)
        r = profile_builder_new(options, &m->builder);
    if (r == 0)
        r = profile_builder_begin(m->builder, m->reader);
    if (r == 0)
        r = profile_builder_read(m->builder);
    return r == 0 ? profile_builder_take(m->builder, &m->profile) : r;
}

/* The frame at a distance from the innermost one of a cell's stack. */
static const Frame *frame_of(const Profile *p, size_t cell, unsigned distance) {
    const StackNode *node = stack_tree_node(p->stacks, p->cells[cell].stack);

    for (; distance > 0; distance--)
        node = stack_tree_node(p->stacks, node->parent);
    return node->depth > 0 ? frame_table_frame(p->frames, node->frame) : NULL;
}

static unsigned depth_of(const Profile *p, size_t cell) {
    return stack_tree_node(p->stacks, p->cells[cell].stack)->depth;
}

static const ProfileOptions all = {.keys = ALL_KEYS};

TEST(frames_are_offsets_in_files_and_callers_are_returns) {
    _cleanup_(made_done) Made m = {};
    const FrameMapping *mapping;

    begin(&m, 0, 0);
    put_chain(&m, PD_MISC_USER, 10, CODE + 0x20, USER, CODE + 0x20, CODE + 0x30);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(m.profile->n_cells, 1);
    CHECK_EQ(depth_of(m.profile, 0), 2);
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0x1020);
    CHECK(!frame_of(m.profile, 0, 0)->is_return);
    CHECK_EQ(frame_of(m.profile, 0, 1)->address, 0x1030);
    CHECK(frame_of(m.profile, 0, 1)->is_return);
    mapping = frame_table_mapping(m.profile->frames, frame_of(m.profile, 0, 0)->mapping);
    CHECK_STREQ((const char *)mapping->path.data, "/bin/shop");
    CHECK_STREQ((const char *)mapping->dso.data, "shop");
    CHECK_EQ(mapping->kind, FRAME_USER);
}

TEST(equal_stacks_are_counted_together_with_their_periods) {
    _cleanup_(made_done) Made m = {};
    const ProfileOptions by_event = {.keys = profile_key_bit(PROFILE_EVENT)};

    begin(&m, 0, 0);
    for (unsigned i = 0; i < 3; i++)
        put_chain(&m, PD_MISC_USER, 10 + i, CODE + 0x20, USER, CODE + 0x20);
    CHECK_OK(make(&m, &by_event));
    CHECK_EQ(m.profile->n_cells, 1);
    CHECK_EQ(m.profile->cells[0].samples, 3);
    CHECK_EQ(m.profile->cells[0].period, 30);
    CHECK_EQ(m.profile->events[0].period, 30);
    CHECK_EQ(m.profile->samples, 3);
    CHECK_EQ(m.profile->first_ns, 10);
    CHECK_EQ(m.profile->last_ns, 12);
}

TEST(labels_hold_only_what_was_asked_for) {
    _cleanup_(made_done) Made m = {};
    const ProfileOptions by_comm = {.keys = profile_key_bit(PROFILE_COMM)};
    const uint32_t *values;

    begin(&m, 0, 0);
    put_chain(&m, PD_MISC_USER, 10, CODE, USER, CODE);
    CHECK_OK(make(&m, &by_comm));
    values = m.profile->labels[0].values;
    CHECK_STREQ((const char *)text_set_get(m.profile->texts, values[PROFILE_COMM]).data, "shop");
    CHECK_EQ(values[PROFILE_PID], PROFILE_NONE);
    CHECK_EQ(values[PROFILE_CPU], PROFILE_NONE);
}

TEST(a_chain_of_another_context_follows_the_instruction) {
    _cleanup_(made_done) Made m = {};

    begin(&m, 0, 0);
    put_chain(&m, PD_MISC_KERNEL, 10, 0xffffffff81000010, USER, CODE + 0x20, CODE + 0x30);
    put_chain(&m, PD_MISC_KERNEL, 11, 0xffffffff81000010, KERNEL, 0xffffffff81000010, USER, CODE);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(depth_of(m.profile, 0), 3);
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0xffffffff81000010);
    CHECK(!frame_of(m.profile, 0, 1)->is_return);
    CHECK_EQ(depth_of(m.profile, 1), 2);
}

TEST(a_sample_without_a_chain_is_its_instruction) {
    _cleanup_(made_done) Made m = {};

    begin(&m, 0, 0);
    put_words(&m, PD_MISC_USER, 10, CODE + 4, 10, NULL, 0, 0);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(depth_of(m.profile, 0), 1);
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0x1004);
}

TEST(rare_stacks_are_folded_below_their_callers) {
    _cleanup_(made_done) Made m = {};
    const ProfileOptions few = {.keys = profile_key_bit(PROFILE_EVENT), .stacks_max = 64};
    uint64_t samples = 0, hot = 0, other = 0;

    begin(&m, 0, 0);
    for (unsigned i = 0; i < 1000; i++) {
        put_chain(&m, PD_MISC_USER, 10 + 2 * i, CODE + 1, USER, CODE + 1, CODE + 2);
        put_chain(&m, PD_MISC_USER, 11 + 2 * i, CODE + 16 + i, USER, CODE + 16 + i, CODE + 2);
    }
    CHECK_OK(make(&m, &few));
    for (size_t i = 0; i < m.profile->n_cells; i++) {
        const Frame *leaf = frame_of(m.profile, i, 0);
        uint64_t n = m.profile->cells[i].samples;

        samples += n;
        if (leaf->address == 0x1001)
            hot += n;
        if (frame_table_mapping(m.profile->frames, leaf->mapping)->kind == FRAME_OTHER)
            other += n;
        CHECK_EQ(depth_of(m.profile, i), 2);
        CHECK_EQ(frame_of(m.profile, i, 1)->address, 0x1002);
    }
    CHECK_EQ(samples, 2000);
    CHECK_EQ(m.profile->samples, 2000);
    CHECK_EQ(hot, 1000);
    CHECK_EQ(other, m.profile->folded);
    CHECK(other > 900);
    CHECK(stack_tree_n_nodes(m.profile->stacks) <= 64);
}

#define MS UINT64_C(1000000)

/* A sample in each of 100 spans of a millisecond, of two stacks in turn. */
static void put_spans(Made *m, uint64_t first_ns, bool backwards) {
    begin(m, 0, 0);
    for (unsigned i = 0; i < 100; i++)
        put_chain(m, PD_MISC_USER, first_ns + (backwards ? 99 - i : i) * MS, CODE, USER, CODE,
                  CODE + 16 + i % 2);
}

/* Each sample is in the span that has its time, of those that are a part or a multiple of seconds.
 */
static void check_spans(const Profile *p, uint64_t first_ns, uint64_t bucket_ns) {
    uint64_t samples = 0, of_spans[100] = {};

    CHECK_EQ(p->bucket_ns, bucket_ns);
    CHECK_EQ((p->start_ns + p->real_offset) % bucket_ns, 0);
    CHECK(p->start_ns <= first_ns && first_ns - p->start_ns < bucket_ns);
    for (size_t i = 0; i < p->n_labels; i++)
        CHECK(p->labels[i].values[PROFILE_TIME] < ARRAY_SIZE(of_spans));
    for (size_t i = 0; i < p->n_cells; i++) {
        of_spans[p->labels[p->cells[i].label].values[PROFILE_TIME]] += p->cells[i].samples;
        samples += p->cells[i].samples;
    }
    for (unsigned i = 0; i < 100; i++) {
        uint64_t *span = &of_spans[(first_ns + i * MS - p->start_ns) / bucket_ns];

        CHECK(*span > 0);
        *span -= 1;
    }
    CHECK_EQ(samples, 100);
    CHECK_EQ(p->folded, 0);
    CHECK_EQ(p->folded_labels, 0);
}

TEST(spans_of_time_become_longer_before_a_label_is_dropped) {
    /* 16 labels at most, and 8 after folding: 1, 2, 4, 8 and 40 ms are parts of a second. */
    const ProfileOptions few = {.keys =
                                    profile_key_bit(PROFILE_EVENT) | profile_key_bit(PROFILE_TIME),
                                .stacks_max = 64,
                                .bucket_ns = MS};

    for (unsigned turn = 0; turn < 4; turn++) {
        _cleanup_(made_done) Made m = {};
        uint64_t first_ns = turn & 1 ? 1975 * MS + 7 : 5000 * MS;

        put_spans(&m, first_ns, turn & 2);
        CHECK_OK(make(&m, &few));
        /* Spans do not begin with the first sample, which makes one more of them than fit. */
        check_spans(m.profile, first_ns, turn & 1 ? 40 * MS : 8 * MS);
    }
}

/* 100 threads are more than the limit of labels, however long a span of time is. */
TEST(labels_that_are_dropped_are_not_counted_as_rare_stacks) {
    const ProfileOptions few = {.keys =
                                    profile_key_bit(PROFILE_TID) | profile_key_bit(PROFILE_TIME),
                                .stacks_max = 64,
                                .bucket_ns = MS};
    _cleanup_(made_done) Made m = {};
    uint64_t other = 0, samples = 0;

    begin(&m, 0, 0);
    for (unsigned i = 0; i < 100; i++)
        put_thread(&m, i, 5000 * MS + i * MS, CODE);
    CHECK_OK(make(&m, &few));
    for (size_t i = 0; i < m.profile->n_cells; i++) {
        const uint32_t *values = m.profile->labels[m.profile->cells[i].label].values;

        samples += m.profile->cells[i].samples;
        CHECK((values[PROFILE_TID] == PROFILE_NONE) == (values[PROFILE_TIME] == PROFILE_NONE));
        if (values[PROFILE_TID] == PROFILE_NONE)
            other += m.profile->cells[i].samples;
    }
    CHECK_EQ(samples, 100);
    CHECK(other > 50);
    CHECK_EQ(m.profile->folded_labels, other);
    CHECK_EQ(m.profile->folded, 0);
    /* Not much longer than all that there is. */
    CHECK(m.profile->bucket_ns <= 200 * MS);
}

TEST(a_window_and_events_leave_samples_out) {
    _cleanup_(made_done) Made m = {};
    ProfileOptions some = {.filter = {.since_ns = 11, .until_ns = 13}};

    begin(&m, 0, 0);
    for (unsigned i = 0; i < 5; i++)
        put_chain(&m, PD_MISC_USER, 10 + i, CODE, USER, CODE);
    CHECK_OK(make(&m, &some));
    CHECK_EQ(m.profile->samples, 2);
    CHECK_EQ(m.profile->left_out, 3);
    CHECK_EQ(m.profile->first_ns, 11);
}

TEST(a_deferred_user_part_is_joined_by_its_cookie) {
    _cleanup_(made_done) Made m = {};

    begin(&m, 0, 0);
    put_chain(&m, PD_MISC_KERNEL, 10, 0xffffffff81000010, KERNEL, 0xffffffff81000010, DEFERRED, 77);
    put_chain(&m, PD_MISC_KERNEL, 11, 0xffffffff81000020, KERNEL, 0xffffffff81000020, DEFERRED, 78);
    put_header(&m.bytes, PD_RECORD_CALLCHAIN_DEFERRED, PD_MISC_USER, 8 + 16 + 24 + 24, false);
    buffer_u64(&m.bytes, 77, false);
    buffer_u64(&m.bytes, 3, false);
    buffer_u64(&m.bytes, USER, false);
    buffer_u64(&m.bytes, CODE + 0x20, false);
    buffer_u64(&m.bytes, CODE + 0x30, false);
    put_trailer(&m.bytes, 12);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(m.profile->samples, 2);
    CHECK_EQ(depth_of(m.profile, 0), 3);
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0xffffffff81000010);
    CHECK_EQ(frame_of(m.profile, 0, 1)->address, 0x1020);
    CHECK_EQ(frame_of(m.profile, 0, 2)->address, 0x1030);
    CHECK_EQ(depth_of(m.profile, 1), 1);
}

static void put_branches(Made *m) {
    static const uint64_t sources[] = {CODE + 0x30, CODE + 0x50};

    put_words(m, PD_MISC_USER, 10, CODE + 0x20, 10, NULL, 0, 8 + sizeof(sources) * 3);
    buffer_u64(&m->bytes, ARRAY_SIZE(sources), false);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        buffer_u64(&m->bytes, sources[i], false);
        buffer_u64(&m->bytes, CODE, false);
        buffer_u64(&m->bytes, 0, false);
    }
}

TEST(branches_of_calls_are_the_callers) {
    _cleanup_(made_done) Made m = {};

    begin(&m, PD_SAMPLE_BRANCH_STACK, PD_BRANCH_CALL_STACK);
    put_branches(&m);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(depth_of(m.profile, 0), 3);
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0x1020);
    CHECK_EQ(frame_of(m.profile, 0, 1)->address, 0x1030);
    CHECK(!frame_of(m.profile, 0, 1)->is_return);
    CHECK_EQ(frame_of(m.profile, 0, 2)->address, 0x1050);
}

TEST(other_branches_are_callers_on_request) {
    _cleanup_(made_done) Made plain = {}, asked = {};
    ProfileOptions options = all;

    begin(&plain, PD_SAMPLE_BRANCH_STACK, 0);
    put_branches(&plain);
    CHECK_OK(make(&plain, &options));
    CHECK_EQ(depth_of(plain.profile, 0), 1);
    options.callers_in_branch = true;
    begin(&asked, PD_SAMPLE_BRANCH_STACK, 0);
    put_branches(&asked);
    CHECK_OK(make(&asked, &options));
    CHECK_EQ(depth_of(asked.profile, 0), 3);
}

TEST(a_stream_is_cut_into_profiles) {
    _cleanup_(made_done) Made m = {};
    _cleanup_(profile_freep) Profile *first = NULL;
    PdRecord record;
    PdStamp stamp;
    PdDamage why;

    begin(&m, 0, 0);
    for (unsigned i = 0; i < 4; i++)
        put_chain(&m, PD_MISC_USER, 10 + i, CODE, USER, CODE);
    CHECK_OK(pd_reader_open_memory((Bytes){.data = m.bytes.data, .size = m.bytes.size}, NULL,
                                   &m.reader, &why));
    CHECK_OK(profile_builder_new(&all, &m.builder));
    CHECK_OK(profile_builder_begin(m.builder, m.reader));
    while (pd_reader_next(m.reader, &record) > 0) {
        CHECK_OK(pd_events_stamp(pd_reader_events(m.reader), &record, &stamp));
        CHECK_OK(profile_builder_feed(m.builder, &record, &stamp));
        if (record.type == PD_RECORD_SAMPLE && stamp.time == 10)
            CHECK_OK(profile_builder_take(m.builder, &first));
    }
    CHECK_OK(profile_builder_take(m.builder, &m.profile));
    CHECK_EQ(first->samples, 1);
    CHECK_EQ(m.profile->samples, 3);
    /* What a process is called and has mapped is still known. */
    CHECK_EQ(frame_of(m.profile, 0, 0)->address, 0x1000);
    CHECK_STREQ(
        (const char *)text_set_get(m.profile->texts, m.profile->labels[0].values[PROFILE_COMM])
            .data,
        "shop");
}

TEST(two_recordings_become_one_profile) {
    _cleanup_(made_done) Made a = {}, b = {};
    PdDamage why;

    begin(&a, 0, 0);
    put_chain(&a, PD_MISC_USER, 10, CODE, USER, CODE);
    CHECK_OK(pd_reader_open_memory((Bytes){.data = a.bytes.data, .size = a.bytes.size}, NULL,
                                   &a.reader, &why));
    CHECK_OK(pd_reader_open_memory((Bytes){.data = a.bytes.data, .size = a.bytes.size}, NULL,
                                   &b.reader, &why));
    CHECK_OK(
        profile_builder_new(&(ProfileOptions){.keys = profile_key_bit(PROFILE_COMM)}, &a.builder));
    CHECK_OK(profile_builder_begin(a.builder, a.reader));
    CHECK_OK(profile_builder_read(a.builder));
    CHECK_OK(profile_builder_begin(a.builder, b.reader));
    CHECK_OK(profile_builder_read(a.builder));
    CHECK_OK(profile_builder_take(a.builder, &a.profile));
    CHECK_EQ(a.profile->n_cells, 1);
    CHECK_EQ(a.profile->n_events, 1);
    CHECK_EQ(a.profile->samples, 2);
}

/* The span that begins at 20 has the number 0, whichever recording is read first. */
TEST(spans_are_counted_from_the_earliest_sample) {
    for (unsigned turn = 0; turn < 2; turn++) {
        _cleanup_(made_done) Made a = {}, b = {};
        ProfileOptions options = {.keys = profile_key_bit(PROFILE_TIME), .bucket_ns = 10};
        PdDamage why;

        begin(&a, 0, 0);
        put_chain(&a, PD_MISC_USER, turn == 0 ? 1042 : 20, CODE, USER, CODE);
        put_chain(&a, PD_MISC_USER, turn == 0 ? 1047 : 35, CODE, USER, CODE);
        begin(&b, 0, 0);
        put_chain(&b, PD_MISC_USER, turn == 0 ? 20 : 1042, CODE, USER, CODE);
        put_chain(&b, PD_MISC_USER, turn == 0 ? 35 : 1047, CODE, USER, CODE);
        CHECK_OK(pd_reader_open_memory((Bytes){.data = a.bytes.data, .size = a.bytes.size}, NULL,
                                       &a.reader, &why));
        CHECK_OK(pd_reader_open_memory((Bytes){.data = b.bytes.data, .size = b.bytes.size}, NULL,
                                       &b.reader, &why));
        CHECK_OK(profile_builder_new(&options, &a.builder));
        CHECK_OK(profile_builder_begin(a.builder, a.reader));
        CHECK_OK(profile_builder_read(a.builder));
        CHECK_OK(profile_builder_begin(a.builder, b.reader));
        CHECK_OK(profile_builder_read(a.builder));
        CHECK_OK(profile_builder_take(a.builder, &a.profile));
        CHECK_EQ(a.profile->start_ns, 20);
        CHECK_EQ(a.profile->n_labels, 3);
        CHECK_EQ(a.profile->labels[turn == 0 ? 1 : 0].values[PROFILE_TIME], 0);
        CHECK_EQ(a.profile->labels[turn == 0 ? 2 : 1].values[PROFILE_TIME], 1);
        CHECK_EQ(a.profile->labels[turn == 0 ? 0 : 2].values[PROFILE_TIME], 102);
    }
}

/* A LOST record at the time 11, and what the event lost in all. */
static void put_losses(Made *m) {
    put_chain(m, PD_MISC_USER, 10, CODE, USER, CODE);
    put_header(&m->bytes, PD_RECORD_LOST, 0, 8 + 16 + 24, false);
    buffer_u64(&m->bytes, 5, false);
    buffer_u64(&m->bytes, 20, false);
    put_trailer(&m->bytes, 11);
    put_header(&m->bytes, PD_RECORD_LOST_SAMPLES, 0, 8 + 8 + 24, false);
    buffer_u64(&m->bytes, 17, false);
    buffer_zero(&m->bytes, 24);
}

TEST(lost_samples_are_counted_once) {
    _cleanup_(made_done) Made m = {};

    begin(&m, 0, 0);
    put_losses(&m);
    CHECK_OK(make(&m, &all));
    CHECK_EQ(m.profile->lost, 17);
    CHECK_EQ(m.profile->events[0].lost, 17);
}

TEST(a_window_has_the_losses_in_it) {
    _cleanup_(made_done) Made with = {}, without = {};
    ProfileOptions options = {.filter = {.until_ns = 12}};

    begin(&with, 0, 0);
    put_losses(&with);
    CHECK_OK(make(&with, &options));
    CHECK_EQ(with.profile->lost, 20);
    options.filter.until_ns = 11;
    begin(&without, 0, 0);
    put_losses(&without);
    CHECK_OK(make(&without, &options));
    CHECK_EQ(without.profile->samples, 1);
    CHECK_EQ(without.profile->lost, 0);
}

TEST_MAIN()
