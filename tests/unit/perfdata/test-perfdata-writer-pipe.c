/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/writer/writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "perfdata/writer/encode.h"

#include "make-recording.h"

/* What a writer puts into a pipe. */

/* The types of the records of a pipe, payload passed over, as one string. */
static void pipe_types(Bytes all, bool swap, char *ret, size_t size) {
    size_t n = 0;

    ret[0] = '\0';
    for (size_t at = PD_PIPE_HEADER_SIZE; at + 8 <= all.size && n + 16 < size;) {
        uint32_t type = load_u32(all.data + at, swap);
        size_t step = load_u16(all.data + at + 6, swap);

        n += (size_t)snprintf(ret + n, size - n, "%s%u", n > 0 ? " " : "", type);
        if (type == PD_RECORD_HEADER_FEATURE)
            n += (size_t)snprintf(ret + n, size - n, ".%u", load_u32(all.data + at + 8, false));
        if (type == PD_RECORD_TRACING_DATA)
            step += load_u32(all.data + at + 8, swap);
        at += step;
    }
}

static void put_build_id_body(Buffer *b) {
    static const uint8_t id[20] = {1, 2, 3};

    pd_encode_build_id(b, UINT32_MAX, PD_MISC_USER, (Bytes){.data = id, .size = sizeof(id)},
                       text_bytes("/bin/true"), false);
}

TEST(a_pipe_has_the_header_of_a_file_as_records) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {}, build_ids = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE, .zstd_level = 1};
    _cleanup_free_ uint8_t *p = NULL;
    PdEvent event = made_event();
    char types[256];
    Bytes all;

    put_build_id_body(&build_ids);
    CHECK_EQ(build_ids.size % 8, (size_t)0);
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_TRACING_DATA, text_bytes("tracing")), 0);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_BUILD_ID, buffer_bytes(&build_ids)), 0);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_HOSTNAME, text_bytes("h")), 0);
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, false);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_ARCH, text_bytes("a")), 0);
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_finish(w));

    all = whole_file(fd);
    p = (uint8_t *)all.data;
    CHECK_EQ(load_u64(p, false), (uint64_t)PD_MAGIC_2);
    CHECK_EQ(load_u64(p + 8, false), (uint64_t)PD_PIPE_HEADER_SIZE);
    pipe_types(all, false, types, sizeof(types));
    CHECK_STREQ(types, "64 78 80.3 80.27 66 67 9 80.6 64 78");
    /* The ids stand where a reader finds them that knows no other attr than one of 128 bytes. */
    CHECK_EQ(load_u16(p + 16 + 6, false), (uint16_t)(8 + 128 + 16));
    CHECK_EQ(load_u32(p + 16 + 8 + 4, false), 128U);
    CHECK_EQ(load_u64(p + 16 + 8 + 128, false), made_ids[0]);
}

TEST(features_that_a_pipe_cannot_hold_are_left_out_and_reported) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE};
    static uint8_t large[65536];
    PdEvent event = made_event();

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_CMDLINE, (Bytes){large, 65520}),
             (int)PD_WRITER_LEFT_OUT);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_VERSION, (Bytes){large, 65519}), 0);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_AUXTRACE, (Bytes){large, 8}),
             (int)PD_WRITER_LEFT_OUT);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_CLN_SIZE, (Bytes){large, 4}),
             (int)PD_WRITER_LEFT_OUT);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_BUILD_ID, (Bytes){large, 40}),
             (int)PD_WRITER_LEFT_OUT);
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_TRACING_DATA, (Bytes){large, 65536}), 0);
    CHECK(pd_writer_left_out(w, PD_FEATURE_CMDLINE));
    CHECK(pd_writer_left_out(w, PD_FEATURE_CLN_SIZE));
    CHECK(!pd_writer_left_out(w, PD_FEATURE_VERSION));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_CMDLINE, (Bytes){large, 8}), 0);
    CHECK(!pd_writer_left_out(w, PD_FEATURE_CMDLINE));
}

TEST(a_pipe_in_the_other_byte_order_is_never_compressed) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE, .swap = true, .zstd_level = 3};
    _cleanup_free_ const uint8_t *p = NULL;
    PdEvent event = made_event();
    char types[64];
    Bytes all;

    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    put_sample(&records, 1, true);
    put_sample(&records, 2, true);
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(pd_writer_finish(w));
    all = whole_file(fd);
    p = all.data;
    pipe_types(all, true, types, sizeof(types));
    CHECK_STREQ(types, "64 78 9 9");
}

TEST(events_that_never_sample_have_no_identifier_in_a_pipe) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_close_ int fd = memory_file();
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE};
    _cleanup_free_ const uint8_t *p = NULL;
    PdEvent counter = made_event(), sampler = made_event();

    counter.attr.sample_type = sampler.attr.sample_type = PD_SAMPLE_IDENTIFIER;
    counter.attr.flags = 0;
    CHECK_OK(pd_writer_new(fd, &options, &w));
    CHECK_EQ(pd_writer_set_feature(w, PD_FEATURE_STAT, (Bytes){}), 0);
    CHECK_OK(pd_writer_add_event(w, &counter));
    CHECK_OK(pd_writer_add_event(w, &sampler));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_finish(w));
    p = whole_file(fd).data;
    CHECK_EQ(load_u64(p + 16 + 8 + 24, false), (uint64_t)0);
    CHECK_EQ(load_u64(p + 16 + 152 + 32 + 8 + 24, false), (uint64_t)PD_SAMPLE_IDENTIFIER);
}

TEST(a_pipe_without_a_reader_fails_with_the_same_errno_each_time) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE};
    PdEvent event = made_event();
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    CHECK_OK(pipe(ends));
    close(ends[0]);
    CHECK_OK(pd_writer_new(ends[1], &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    CHECK_EQ(pd_writer_flush(w), -EPIPE);
    CHECK_EQ(pd_writer_finish(w), -EPIPE);
    close(ends[1]);
}

TEST(a_full_pipe_is_waited_for) {
    _cleanup_(pd_writer_freep) PdWriter *w = NULL;
    _cleanup_(buffer_done) Buffer records = {};
    PdWriterOptions options = {.layout = PD_LAYOUT_PIPE};
    PdEvent event = made_event();
    int ends[2], status;
    pid_t child;

    CHECK_OK(pipe2(ends, O_NONBLOCK));
    for (unsigned i = 0; i < 20000; i++)
        put_sample(&records, i, false);
    child = fork();
    if (child == 0) {
        static char room[3000];
        size_t total = 0;
        ssize_t n;

        close(ends[1]);
        fcntl(ends[0], F_SETFL, 0);
        usleep(20000);
        while ((n = read(ends[0], room, sizeof(room))) > 0)
            total += (size_t)n;
        _exit(total == 16 + 152 + 32 + 20000 * MADE_SAMPLE_SIZE ? 0 : 1);
    }
    close(ends[0]);
    CHECK_OK(pd_writer_new(ends[1], &options, &w));
    CHECK_OK(pd_writer_add_event(w, &event));
    CHECK_OK(pd_writer_begin(w));
    CHECK_OK(pd_writer_write(w, 0, records.data, records.size));
    CHECK_OK(pd_writer_finish(w));
    close(ends[1]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

TEST_MAIN()
