/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>

#include "make-container.h"
#include "perfdata/reader/source.h"
#include "util/file.h"

#include "test.h"

/* The window over streams and files. */

TEST(a_stream_returns_whole_records_and_waits_for_the_rest) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_(buffer_done) Buffer pipe = make_pipe(false);
    size_t half = pipe.size - 30;
    int fds[2];
    PdRecord rec;

    CHECK_OK(pipe2(fds, O_CLOEXEC));
    CHECK_OK(file_write_all(fds[1], pipe.data, half));
    CHECK_OK(pd_reader_open_fd(fds[0], NULL, &r, NULL));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_HEADER_FEATURE);
    CHECK_OK(file_write_all(fds[1], pipe.data + half, 30));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    CHECK_EQ(rec.type, PD_RECORD_SAMPLE);
    CHECK_EQ(pd_reader_rewind(r), -ESPIPE);
    close(fds[1]);
    CHECK_EQ(pd_reader_next(r, &rec), 0);
    CHECK_EQ(pd_reader_next(r, &rec), 0);
    CHECK(!pd_reader_damage(r));
}

TEST(the_layout_of_a_file_is_refused_from_a_pipe) {
    _cleanup_(buffer_done) Buffer file = make_file(&(FileShape){.data_size = UINT64_MAX});
    PdReader *r = NULL;
    PdDamage why;
    int fds[2];

    CHECK_OK(pipe2(fds, O_CLOEXEC));
    CHECK_OK(file_write_all(fds[1], file.data, file.size));
    close(fds[1]);
    CHECK_EQ(pd_reader_open_fd(fds[0], NULL, &r, &why), -ESPIPE);
    CHECK(why.text[0] != '\0');
    CHECK_OK(close(fds[0])); /* it stayed ours */
}

/* Through a descriptor the window moves; long records and payloads must not notice. */
TEST(the_window_moves_over_records_of_any_size) {
    _cleanup_(pd_reader_freep) PdReader *r = NULL;
    _cleanup_(buffer_done) Buffer whole = {};
    Maker m = {};
    int fd = memfd_create("recording", MFD_CLOEXEC);
    unsigned n = 0;
    PdRecord rec;

    put_pipe_header(&m);
    put_header_attr(&m, 11);
    for (unsigned i = 0; i < 200; i++) {
        size_t size = 8 + (i * 7919 % 8190) * 8;

        put_head(&m, PD_RECORD_COMM, (uint16_t)i, size);
        for (size_t k = 8; k < size; k++)
            buffer_append(&m.b, &(uint8_t){(uint8_t)(i + k)}, 1);
    }
    whole = m.b;
    CHECK_OK(buffer_error(&whole));
    CHECK_OK(file_write_all(fd, whole.data, whole.size));
    CHECK_OK(pd_reader_open_fd(fd, NULL, &r, NULL));
    CHECK_EQ(pd_reader_next(r, &rec), 1);
    while (pd_reader_next(r, &rec) > 0) {
        CHECK_EQ(rec.misc, n);
        for (size_t k = 8; k < rec.size; k++)
            CHECK(rec.data[k] == (uint8_t)(n + k));
        n++;
    }
    CHECK_EQ(n, 200);
    CHECK(!pd_reader_damage(r));
    CHECK_EQ(pd_reader_position(r), whole.size);
}

static void fill(uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 256);
}

static int open_file_of(const uint8_t *bytes, size_t n, Source *ret) {
    int fd = memfd_create("source", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : file_write_all(fd, bytes, n);

    return r < 0 ? r : source_open_fd(ret, fd);
}

TEST(a_section_of_a_file_ends_at_its_limit) {
    uint8_t bytes[5000], two[2];
    Source s;

    fill(bytes, sizeof(bytes));
    CHECK_OK(open_file_of(bytes, sizeof(bytes), &s));
    source_seek(&s, 100, 4000);
    CHECK_EQ(source_remaining(&s), 3900);
    CHECK_OK(source_want(&s, 5000));
    CHECK(s.ended);
    CHECK_EQ(source_left(&s), 3900);
    CHECK(memcmp(source_at(&s), bytes + 100, 3900) == 0);
    CHECK_OK(source_skip(&s, 3000));
    CHECK_EQ(source_offset(&s), 3100);
    CHECK_OK(source_skip(&s, UINT64_MAX));
    CHECK_EQ(source_offset(&s), 4000);
    CHECK_EQ(source_remaining(&s), 0);
    CHECK_OK(source_read_at(&s, 4998, two, 2));
    CHECK_EQ(two[1], bytes[4999]);
    CHECK_EQ(source_read_at(&s, 4999, two, 2), -ENODATA);
    CHECK_EQ(source_read_at(&s, UINT64_MAX, two, 2), -ENODATA);
    source_seek(&s, UINT64_MAX - 3, UINT64_MAX);
    CHECK_OK(source_want(&s, 8));
    CHECK_EQ(source_left(&s), 0);
    source_done(&s);
}

TEST(a_file_that_shrinks_while_it_is_read_ends_early) {
    _cleanup_free_ uint8_t *bytes = calloc(1, 1024 * 1024);
    uint8_t one;
    Source s;

    CHECK_OK(open_file_of(bytes, 1024 * 1024, &s));
    source_seek(&s, 0, UINT64_MAX);
    CHECK_OK(source_want(&s, 1));
    CHECK_OK(ftruncate(s.fd, 10));
    CHECK_OK(source_skip(&s, 500000));
    CHECK_OK(source_want(&s, 1));
    CHECK_EQ(source_left(&s), 0);
    CHECK(s.ended);
    CHECK_EQ(source_read_at(&s, 500000, &one, 1), -ENODATA);
    source_done(&s);
}

TEST(bytes_of_a_stream_are_skipped_by_reading) {
    uint8_t bytes[3000];
    int fds[2];
    Source s;

    fill(bytes, sizeof(bytes));
    CHECK_OK(pipe2(fds, O_CLOEXEC | O_NONBLOCK));
    CHECK_OK(file_write_all(fds[1], bytes, sizeof(bytes)));
    CHECK_OK(source_open_fd(&s, fds[0]));
    CHECK(s.stream);
    CHECK_EQ(source_remaining(&s), UINT64_MAX);
    CHECK_OK(source_want(&s, 10));
    CHECK_OK(source_skip(&s, 2990));
    CHECK_EQ(source_offset(&s), 2990);
    CHECK_OK(source_want(&s, 10));
    CHECK_EQ(*source_at(&s), bytes[2990]);
    close(fds[1]);
    CHECK_OK(source_skip(&s, 11));
    CHECK(s.ended);
    CHECK_EQ(source_offset(&s), 3000);
    source_done(&s);
}

TEST(memory_is_its_own_window) {
    uint8_t bytes[100];
    Source s;

    fill(bytes, sizeof(bytes));
    source_open_memory(&s, (Bytes){bytes, sizeof(bytes)});
    source_seek(&s, 10, 60);
    CHECK_OK(source_want(&s, 50));
    CHECK(source_at(&s) == bytes + 10 && source_left(&s) == 50);
    CHECK_OK(source_want(&s, 51));
    CHECK(s.ended && source_left(&s) == 50);
    source_seek(&s, 1000, UINT64_MAX);
    CHECK_EQ(source_left(&s), 0);
    source_done(&s);
}

TEST_MAIN()
