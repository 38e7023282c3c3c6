/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/text/line.h"

#include <sys/mman.h>

#include "test.h"

/* Lines of any length, whatever pieces they come in. */

static LineReader reader;

static int file_of(const char *text, size_t n) {
    int fd = memfd_create("lines", MFD_CLOEXEC);

    if (write(fd, text, n) != (ssize_t)n || lseek(fd, 0, SEEK_SET) < 0)
        abort();
    return fd;
}

TEST(lines_are_returned_one_by_one_and_the_last_needs_no_newline) {
    _cleanup_close_ int fd = file_of("a\n\nb\0c\nend", 10);
    size_t size;
    char *line;

    line_reader_init(&reader, fd);
    CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
    CHECK_STREQ(line, "a");
    CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
    CHECK_EQ(size, 0U);
    CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
    CHECK_EQ(size, 3U);
    CHECK_EQ(memcmp(line, "b\0c", 4), 0);
    CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
    CHECK_STREQ(line, "end");
    CHECK_EQ(line_reader_next(&reader, &line, &size), 0);
    CHECK_EQ(line_reader_next(&reader, &line, &size), 0);
}

TEST(a_line_that_is_too_long_is_skipped_and_the_next_is_whole) {
    static char text[5 * LINE_READER_SIZE];
    _cleanup_close_ int fd = -1;
    size_t size;
    char *line;

    for (size_t n = LINE_READER_SIZE - 2; n < LINE_READER_SIZE + 3; n++) {
        closep(&fd);
        memset(text, 'x', n);
        memcpy(text + n, "\nshort\n", 7);
        memset(text + n + 7, 'y', 3 * LINE_READER_SIZE);
        fd = file_of(text, n + 7 + 3 * LINE_READER_SIZE);
        line_reader_init(&reader, fd);
        CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
        if (n < LINE_READER_SIZE) {
            CHECK_EQ(size, n);
            CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
        }
        CHECK_STREQ(line, "short");
        CHECK_EQ(line_reader_next(&reader, &line, &size), 0);
    }
}

TEST(lines_are_the_same_for_reads_of_any_size) {
    int ends[2];
    size_t size;
    char *line, text[64];

    CHECK_OK(pipe(ends));
    line_reader_init(&reader, ends[0]);
    for (unsigned i = 0; i < 40000; i++) {
        int n = snprintf(text, sizeof(text), "line %u", i);

        CHECK_EQ(write(ends[1], text, 3), 3);
        if (i > 0) {
            char previous[64];

            /* The text that is there so far ends in the middle of a line. */
            snprintf(previous, sizeof(previous), "line %u", i - 1);
            CHECK_EQ(line_reader_next(&reader, &line, &size), 1);
            CHECK_STREQ(line, previous);
        }
        text[n] = '\n';
        CHECK_EQ(write(ends[1], text + 3, (size_t)n - 2), n - 2);
    }
    close(ends[0]);
    close(ends[1]);
}

TEST(unreadable_input_is_an_error) {
    size_t size;
    char *line;

    line_reader_init(&reader, -1);
    CHECK_EQ(line_reader_next(&reader, &line, &size), -EBADF);
}

TEST_MAIN()
