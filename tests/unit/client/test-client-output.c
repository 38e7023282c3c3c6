/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/frame/output.h"

#include <fcntl.h>
#include <signal.h>

#include "test.h"
#include "util/text.h"

TEST(buffered_output_is_written_at_close) {
    _cleanup_close_ int from = -1;
    char got[16] = "";
    Output o;
    int fds[2];

    CHECK_OK(pipe(fds));
    from = fds[0];
    o = output_to(fds[1]);
    text_puts(&o.buffer, "result\n");
    CHECK_OK(output_breathe(&o));
    CHECK_EQ(o.buffer.size, 7U);
    CHECK_OK(output_close(&o));
    output_done(&o);
    CHECK_EQ(read(from, got, sizeof(got)), 7);
    CHECK_STREQ(got, "result\n");
}

TEST(a_full_block_is_written_at_once) {
    _cleanup_close_ int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
    Output o = output_to(file);

    buffer_zero(&o.buffer, OUTPUT_BLOCK);
    CHECK_OK(output_breathe(&o));
    CHECK_EQ(o.buffer.size, 0U);
    output_done(&o);
}

TEST(a_full_disk_is_noticed_and_remembered) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    Output o = output_to(full);

    text_puts(&o.buffer, "lost");
    CHECK_EQ(output_flush(&o), -ENOSPC);
    text_puts(&o.buffer, "also lost");
    CHECK_EQ(output_breathe(&o), -ENOSPC);
    CHECK_EQ(output_close(&o), -ENOSPC);
    output_done(&o);
}

TEST(a_reader_that_left_gives_epipe) {
    Output o;
    int fds[2];

    (void)signal(SIGPIPE, SIG_IGN);
    CHECK_OK(pipe(fds));
    (void)close(fds[0]);
    o = output_to(fds[1]);
    text_puts(&o.buffer, "to nobody");
    CHECK_EQ(output_close(&o), -EPIPE);
    output_done(&o);
}

TEST(out_of_memory_is_an_error_of_the_output) {
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    Output o = output_to(null);

    o.buffer.error = -ENOMEM;
    CHECK_EQ(output_breathe(&o), -ENOMEM);
    CHECK_EQ(output_flush(&o), -ENOMEM);
    output_done(&o);
}

TEST(only_a_terminal_gets_a_pager) {
    _cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    Output o = output_to(null);

    (void)setenv("PROFD_PAGER", "false", 1);
    (void)setenv("TERM", "xterm", 1);
    output_page(&o);
    CHECK_EQ(o.pager, 0);
    CHECK_EQ(o.fd, null);
    output_done(&o);
}

TEST_MAIN()
