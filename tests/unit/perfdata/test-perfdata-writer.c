/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "perfdata/reader/reader.h"
#include "perfdata/writer/encode.h"

#include "make-recording.h"

/* The place of each part that a writer writes, in files and folders and in both byte orders. */

static void check_plain_file(bool swap) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .swap = swap};
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent event = made_event();
    Bytes all;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text_bytes("first")));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text_bytes("second")));
    CHECK_OK(pd_writer_set_feature(w, 200, text_bytes("x")));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, swap);
    put_sample(&records, 2, swap);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_EQ(pd_writer_offset(w), (uint64_t)104 + 16 + 80 + 80);
    CHECK_OK(pd_writer_finish(w));

    all = whole_file(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p, swap), (uint64_t)PD_MAGIC_2);
    CHECK_EQ(load_u64(p + 8, swap), (uint64_t)104);
    CHECK_EQ(load_u64(p + 16, swap), (uint64_t)64 + 16);
    CHECK_EQ(load_u64(p + 24, swap), (uint64_t)104 + 16);
    CHECK_EQ(load_u64(p + 32, swap), (uint64_t)80);
    CHECK_EQ(load_u64(p + 40, swap), (uint64_t)200);
    CHECK_EQ(load_u64(p + 48, swap), (uint64_t)80);
    CHECK_EQ(load_u64(p + 72, swap), 1ULL << PD_FEATURE_HOSTNAME);
    CHECK_EQ(load_u64(p + 96, swap), 1ULL << (200 - 192));
    CHECK_EQ(load_u64(p + 104, swap), made_ids[0]);
    CHECK_EQ(load_u32(p + 120 + 4, swap), 64U);
    CHECK_EQ(load_u64(p + 120 + 64, swap), (uint64_t)104);
    CHECK_EQ(load_u64(p + 120 + 72, swap), (uint64_t)16);
    CHECK(memcmp(p + 200, records.data, records.size) == 0);
    CHECK_EQ(load_u64(p + 280, swap), (uint64_t)280 + 32);
    CHECK_EQ(load_u64(p + 288, swap), (uint64_t)6);
    CHECK_EQ(load_u64(p + 296, swap), (uint64_t)280 + 38);
    CHECK(memcmp(p + 312, "secondx", 7) == 0);
    CHECK_EQ(all.size, (size_t)319);
}

TEST(a_file_has_header_ids_attrs_data_and_features_in_their_places) {
    check_plain_file(false);
}

TEST(a_file_of_the_other_byte_order_has_every_number_swapped) {
    check_plain_file(true);
}

TEST(an_unfinished_file_is_marked_and_has_its_events) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent event = made_event();
    Bytes all;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text_bytes("h")));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, false);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(pd_writer_flush(w));
    all = whole_file(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p + 32, false), (uint64_t)80);
    CHECK_EQ(load_u64(p + 48, false), (uint64_t)0);
    CHECK_EQ(load_u64(p + 72, false), (uint64_t)0);
    CHECK_EQ(all.size, (size_t)240);
}

TEST(a_finished_file_without_records_counts_as_finished) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    PdEvent event = made_event();

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_finish(w));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &reader, NULL));
    CHECK(!pd_reader_header(reader)->unfinished);
}

TEST(attrs_of_several_sizes_all_get_the_largest) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent small = made_event(), large = made_event();
    uint8_t raw[72] = {[0] = 1, [4] = 72, [64] = 9};

    small.raw = raw;
    small.raw_size = sizeof(raw);
    large.attr.aux_sample_size = 1;
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &small));
    CHECK_OK(pd_writer_add_event(w, &large));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_finish(w));
    p = (uint8_t *)whole_file(fd).data;
    CHECK_EQ(load_u64(p + 16, false), (uint64_t)120 + 16);
    CHECK_EQ(load_u64(p + 24, false), (uint64_t)104 + 32);
    CHECK_EQ(load_u32(p + 136 + 4, false), 120U);
    CHECK_EQ(p[136 + 64], 9);
    CHECK_EQ(load_u32(p + 136 + 136 + 4, false), 120U);
    CHECK_EQ(load_u64(p + 136 + 136 + 120, false), (uint64_t)120);
}

TEST(trailing_zeros_do_not_enlarge_an_attr) {
    uint8_t raw[144] = {[0] = 1, [4] = 144};
    PdEvent event = made_event();

    event.raw = raw;
    event.raw_size = sizeof(raw);
    CHECK_EQ(pd_encode_attr_size(&event), 128U);
    raw[130] = 1;
    CHECK_EQ(pd_encode_attr_size(&event), 136U);
    event.raw_size = 80;
    CHECK_EQ(pd_encode_attr_size(&event), 80U);
    event.raw = NULL;
    CHECK_EQ(pd_encode_attr_size(&event), 64U);
}

TEST(an_event_that_is_added_late_is_in_the_attrs_after_the_data) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    uint64_t late_id = 99;
    PdEvent event = made_event(), late = made_event();

    late.attr.config = 5;
    late.attr.sample_max_stack = 3;
    late.ids = &late_id;
    late.n_ids = 1;
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text_bytes("odd")));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_add_event(w, &late));
    CHECK_OK(pd_writer_finish(w));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &reader, NULL));
    CHECK_EQ(pd_events_count(pd_reader_events(reader)), (size_t)2);
    CHECK_EQ(pd_events_by_id(pd_reader_events(reader), 99)->attr.config, (uint64_t)5);
    CHECK_EQ(pd_events_by_id(pd_reader_events(reader), 12)->attr.config, (uint64_t)0);
}

TEST(features_that_the_writer_makes_and_partial_records_are_refused) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    PdEvent event = made_event();

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_COMPRESSED, text_bytes("x")), -EINVAL);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_DIR_FORMAT, text_bytes("x")), -EINVAL);
    CHECK_EQ(pd_writer_set_feature(w, 0, text_bytes("x")), -EINVAL);
    CHECK_EQ(pd_writer_set_feature(w, 256, text_bytes("x")), -EINVAL);
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, false);
    CHECK_EQ(pd_writer_write(w, 0, records.data, records.size - 8), -EINVAL);
    CHECK_EQ(pd_writer_write(w, 0, records.data, 4), -EINVAL);
    CHECK_EQ(pd_writer_write(w, 1, records.data, records.size), -EINVAL);
    store_u16(records.data + 6, 7, false);
    CHECK_EQ(pd_writer_write(w, 0, records.data, records.size), -EINVAL);
    CHECK_EQ(pd_writer_raw_bytes(w), (uint64_t)0);
}

TEST(options_out_of_range_are_refused) {
    static const PdWriterOptions wrong[] = {
        {.layout = PD_LAYOUT_FILE, .zstd_level = 23},
        {.layout = PD_LAYOUT_FILE, .zstd_level = -1},
        {.layout = PD_LAYOUT_DIRECTORY},
        {.layout = PD_LAYOUT_DIRECTORY, .n_files = 65},
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        PdWriter *w = NULL;

        CHECK_EQ(pd_writer_new(-1, &wrong[i], &w), -EINVAL);
        CHECK(!w);
    }
}

TEST(a_file_continues_after_a_full_disk) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    struct rlimit limit, before;
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent event = made_event();
    Bytes all;

    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(getrlimit(RLIMIT_FSIZE, &before));
    limit = (struct rlimit){.rlim_cur = 200 + 60, .rlim_max = before.rlim_max};
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, false);
    put_sample(&records, 2, false);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    CHECK_EQ(pd_writer_flush(w), -EFBIG);
    CHECK_EQ(pd_writer_finish(w), -EFBIG);
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &before));
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(pd_writer_finish(w));
    all = whole_file(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p + 48, false), (uint64_t)160);
    CHECK_EQ(all.size, (size_t)360);
    CHECK(memcmp(p + 200, records.data, 80) == 0);
    CHECK(memcmp(p + 280, records.data, 80) == 0);
}

TEST(a_large_write_to_a_full_disk_is_refused_and_written_once_when_repeated) {
    enum { SAMPLES = 5000, BYTES = SAMPLES * 40, FRONT = 200 };
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    PdSpan span = {.samples = SAMPLES, .first_ns = 1, .last_ns = SAMPLES};
    struct rlimit limit, before;
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent event = made_event();
    Bytes all;

    signal(SIGXFSZ, SIG_IGN);
    CHECK_OK(getrlimit(RLIMIT_FSIZE, &before));
    limit = (struct rlimit){.rlim_cur = FRONT + BYTES / 2, .rlim_max = before.rlim_max};
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    for (uint64_t i = 1; i <= SAMPLES; i++)
        put_sample(&records, i, false);
    CHECK_EQ(records.size, (size_t)BYTES);
    CHECK_OK(pd_writer_write(w, 0, records.data, 40));
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &limit));
    CHECK_EQ(pd_writer_write_samples(w, 0, records.data, records.size, &span), -EFBIG);
    CHECK_EQ(pd_writer_offset(w), (uint64_t)(FRONT + 40));
    CHECK_OK(setrlimit(RLIMIT_FSIZE, &before));
    CHECK_OK(pd_writer_write_samples(w, 0, records.data, records.size, &span));
    CHECK_OK(pd_writer_write(w, 0, records.data, 40));
    CHECK_EQ(pd_writer_raw_bytes(w), (uint64_t)(BYTES + 80));
    CHECK_OK(pd_writer_finish(w));
    all = whole_file(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(all.size, (size_t)(FRONT + BYTES + 80));
    CHECK(memcmp(p + FRONT, records.data, 40) == 0);
    CHECK(memcmp(p + FRONT + 40, records.data, BYTES) == 0);
    CHECK(memcmp(p + FRONT + 40 + BYTES, records.data, 40) == 0);
}

TEST(a_descriptor_that_appends_is_refused_for_a_file) {
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE};
    _cleanup_close_ int fd = memory_file();
    PdWriter *w = NULL;

    CHECK_OK(fcntl(fd, F_SETFL, O_APPEND));
    CHECK_EQ(pd_writer_new(fd, &options, &w), -EINVAL);
}

TEST(a_frame_ends_where_the_caller_ends_it) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .zstd_level = 1};
    PdEvent event = made_event();
    PdRecord record;

    for (unsigned i = 0; i < 20; i++)
        put_sample(&b, i, false);
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    for (unsigned i = 0; i < 3; i++) {
        CHECK_OK(pd_writer_write(w, 0, b.data, b.size));
        CHECK_OK(pd_writer_end_frame(w, 0));
        CHECK_OK(pd_writer_end_frame(w, 0));
    }
    CHECK_EQ(pd_writer_end_frame(w, 1), -EINVAL);
    CHECK_OK(pd_writer_finish(w));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &reader, NULL));
    while (pd_reader_next(reader, &record) > 0)
        ;
    CHECK_EQ(pd_reader_on_disk(reader, PD_RECORD_COMPRESSED), (uint64_t)3);
}

TEST(a_payload_follows_its_record_within_compressed_data) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer samples = {}, aux = {};
    int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .zstd_level = 3};
    PdEvent event = made_event();
    char payload[17] = "0123456789abcdef";
    unsigned n = 0, n_frames;
    uint64_t at;
    PdRecord record;

    for (unsigned i = 0; i < 50; i++)
        put_sample(&samples, i, false);
    put_header(&aux, PD_RECORD_AUXTRACE, 0, 48, false);
    buffer_u64(&aux, 16, false);
    buffer_zero(&aux, 32);
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_write(w, 0, samples.data, samples.size));
    CHECK_OK(pd_writer_write(w, 0, aux.data, aux.size));
    at = pd_writer_offset(w) - aux.size;
    CHECK_OK(pd_writer_payload(w, payload, 10));
    CHECK_OK(pd_writer_payload(w, payload + 10, 6));
    CHECK_OK(pd_writer_write(w, 0, samples.data, samples.size));
    CHECK_OK(pd_writer_finish(w));
    CHECK(pd_writer_stored_bytes(w) < pd_writer_raw_bytes(w));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &reader, NULL));
    while (pd_reader_next(reader, &record) > 0) {
        n++;
        if (record.type != PD_RECORD_AUXTRACE)
            continue;
        CHECK_EQ(n, 51U);
        CHECK_EQ(record.offset, at);
        CHECK_EQ(record.payload, (uint64_t)16);
        memset(payload, 0, sizeof(payload));
        CHECK_EQ(pd_reader_payload(reader, payload, 16), (ssize_t)16);
        CHECK_STREQ(payload, "0123456789abcdef");
    }
    CHECK(!pd_reader_damage(reader));
    CHECK_EQ(n, 101U);
    n_frames = (unsigned)pd_reader_on_disk(reader, PD_RECORD_COMPRESSED);
    CHECK_EQ(n_frames, 2U);
}

static void check_directory(int level, bool swap) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    char folder[] = "/tmp/writer-XXXXXX", command[64];
    _cleanup_close_ int fd = mkdtemp(folder) ? open(folder, O_DIRECTORY | O_CLOEXEC) : -1;
    PdWriterOptions options = {
        .layout = PD_LAYOUT_DIRECTORY, .swap = swap, .zstd_level = level, .n_files = 2};
    PdEvent event = made_event();
    unsigned counts[3] = {};
    PdRecord record;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    for (unsigned i = 0; i < 300; i++) {
        _cleanup_(buffer_done) Buffer b = {};

        put_sample(&b, i, swap);
        CHECK_OK(pd_writer_write(w, i % 100 == 0 ? 0 : i % 3 == 0 ? 1 : 2, b.data, b.size));
    }
    CHECK_EQ(pd_writer_write(w, 3, "", 0), -EINVAL);
    CHECK_OK(pd_writer_finish(w));
    CHECK_OK(pd_reader_open(folder, NULL, &reader, NULL));
    CHECK_EQ((int)pd_reader_header(reader)->mode, (int)PD_MODE_DIRECTORY);
    CHECK_EQ(pd_reader_header(reader)->n_files, 3U);
    while (pd_reader_next(reader, &record) > 0)
        counts[record.file]++;
    CHECK(!pd_reader_damage(reader));
    CHECK_EQ(counts[0], 3U);
    CHECK_EQ(counts[1], 99U);
    CHECK_EQ(counts[2], 198U);
    CHECK(pd_reader_has_feature(reader, PD_FEATURE_DIR_FORMAT));
    CHECK_EQ(pd_reader_has_feature(reader, PD_FEATURE_COMPRESSED), level > 0);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
}

TEST(a_directory_keeps_records_in_the_file_they_were_given_to) {
    check_directory(0, false);
    check_directory(0, true);
}

TEST(a_directory_may_be_compressed_in_all_its_files) {
    check_directory(3, false);
    check_directory(3, true);
}

TEST(a_folder_that_is_not_empty_is_refused) {
    char folder[] = "/tmp/writer-XXXXXX", command[64];
    _cleanup_close_ int fd = mkdtemp(folder) ? open(folder, O_DIRECTORY | O_CLOEXEC) : -1;
    PdWriterOptions options = {.layout = PD_LAYOUT_DIRECTORY, .n_files = 1};
    PdWriter *w = NULL;

    close(openat(fd, "data.0", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK_EQ(pd_writer_new(fd, &options, &w), -EEXIST);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK_EQ(system(command), 0);
}

TEST(the_tally_gives_sample_time_and_build_ids_also_when_compressed) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    _cleanup_(buffer_done) Buffer b = {};
    int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_FILE, .zstd_level = 3, .tally = true};
    PdEvent event = made_event();
    Bytes body;

    put_mmap(&b, "/bin/a", 1, 0, false);
    for (unsigned i = 0; i < 50; i++)
        put_sample(&b, 1000 + i * 7919 % 50, false);
    put_mmap(&b, "/bin/a", 1, 3000, false);
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_write(w, 0, b.data, b.size));
    CHECK_OK(pd_writer_finish(w));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &reader, NULL));
    CHECK_OK(pd_reader_feature(reader, PD_FEATURE_SAMPLE_TIME, &body));
    CHECK_EQ(load_u64(body.data, false), (uint64_t)1000);
    CHECK_EQ(load_u64(body.data + 8, false), (uint64_t)1049);
    CHECK_OK(pd_reader_feature(reader, PD_FEATURE_BUILD_ID, &body));
    CHECK_EQ(body.size, (size_t)104);
    CHECK_STREQ((const char *)body.data + 36, "/bin/a");
    CHECK_EQ(body.data[12], 1);
}

TEST(an_event_desc_names_every_event) {
    _cleanup_(pd_events_freep) PdEvents *events = NULL;
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    PdEvent event = made_event(), *mine;

    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(buffer_done) Buffer body = {};

        events = pd_events_free(events);
        env = pd_environment_free(env);
        CHECK_OK(pd_events_new(&events));
        CHECK_OK(pd_environment_new(&env));
        CHECK_OK(pd_events_add(events, &event.attr, (Bytes){}, made_ids, 2, &mine));
        CHECK_OK(pd_events_set_name(events, mine, text_bytes("my clock")));
        CHECK_OK(pd_events_add(events, &event.attr, (Bytes){}, NULL, 0, NULL));
        pd_encode_event_desc(&body, events, swap);
        CHECK_OK(buffer_error(&body));
        CHECK_OK(pd_environment_read(env, PD_FEATURE_EVENT_DESC, buffer_bytes(&body), swap));
        CHECK_EQ(env->n_event_descs, (size_t)2);
        CHECK_STREQ(env->event_descs[0].name, "my clock");
        CHECK_EQ(env->event_descs[0].n_ids, (size_t)2);
        CHECK_EQ(env->event_descs[0].ids[1], made_ids[1]);
        CHECK_STREQ(env->event_descs[1].name, "cpu-clock");
        CHECK_EQ(env->event_descs[1].attr.sample_period, (uint64_t)1000);
    }
}

TEST_MAIN()
