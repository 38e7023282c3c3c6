/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include "elf/elf-request.h"
#include "make-elf-reader.h"
#include "util/clock.h"
#include "util/fd-message.h"

/* The file in which a process names the code that it generates, while the process lives. */

static char map[64];

static CodeMapAnswer none(void) {
    return (CodeMapAnswer){.source = -1, .fd = -1};
}

static void forget(CodeMapAnswer *answer) {
    closep(&answer->source);
    closep(&answer->fd);
}

static void write_map(const char *mode, const char *line) {
    FILE *f = fopen(map, mode);

    if (!f || fputs(line, f) < 0 || fclose(f) != 0)
        abort();
}

/* A process with a map that it has just written. */
static MappedImage begin_map(void) {
    pid_t pid;

    begin(false);
    pid = run(FIRST);
    snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)pid);
    write_map("w", "7f0000001000 40 first\n");
    return (MappedImage){.pid = (uint32_t)pid, .path = ""};
}

static void end_map(const MappedImage *image) {
    end_process((pid_t)image->pid);
    (void)unlink(map);
    end();
}

TEST(the_map_of_a_process_is_read_when_it_was_written_to) {
    MappedImage image = begin_map();
    CodeMapAnswer answer = none();

    CHECK_OK(elf_reader_code_map(reader, &image, &answer));
    CHECK(answer.source >= 0 && answer.fd >= 0 && answer.bytes > 0);
    closep(&answer.fd);
    CHECK_OK(elf_reader_code_map(reader, &image, &answer));
    CHECK(answer.fd < 0);
    write_map("a", "7f0000001040 40 second\n");
    CHECK_OK(elf_reader_code_map(reader, &image, &answer));
    CHECK(answer.fd >= 0);
    forget(&answer);
    end_map(&image);
}

TEST(a_map_that_is_older_than_its_process_is_not_held) {
    MappedImage image = begin_map();
    CodeMapAnswer answer = none();
    struct timespec times[2];

    times[0] = times[1] = clock_timespec(clock_ns(CLOCK_REALTIME) - NS_PER_SECOND);
    CHECK_OK(utimensat(AT_FDCWD, map, times, 0));
    CHECK_EQ(elf_reader_code_map(reader, &image, &answer), -ENOENT);
    CHECK(answer.source < 0 && answer.fd < 0);
    forget(&answer);
    /* The process begins to write. */
    answer = none();
    write_map("w", "7f0000001000 40 own\n");
    CHECK_OK(elf_reader_code_map(reader, &image, &answer));
    CHECK(answer.source >= 0 && answer.fd >= 0);
    forget(&answer);
    end_map(&image);
}

static void crash(int socket) {
    uint8_t bytes[sizeof(ElfRequest)];
    int fd = -1;

    if (message_receive(socket, bytes, sizeof(bytes), &fd) < 0)
        return;
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

TEST(a_map_over_which_the_helper_ended_is_read_again) {
    MappedImage image = begin_map();
    CodeMapAnswer answer = none();

    keeper.elf = crash;
    CHECK_EQ(elf_reader_code_map(reader, &image, &answer), -ECANCELED);
    CHECK(answer.source >= 0 && answer.fd < 0 && answer.is_unread);
    keeper.elf = NULL;
    /* It is not started again at once. */
    CHECK_EQ(elf_reader_code_map(reader, &image, &answer), -EAGAIN);
    CHECK(answer.is_unread);
    while (clock_monotonic_ns() < elf_reader_ready_ns(reader))
        (void)usleep(1000);
    CHECK_OK(elf_reader_code_map(reader, &image, &answer));
    CHECK(answer.fd >= 0 && !answer.is_unread);
    forget(&answer);
    end_map(&image);
}

TEST_MAIN()
