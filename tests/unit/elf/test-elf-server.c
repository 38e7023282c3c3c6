/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "elf/elf-request.h"
#include "test.h"
#include "util/fd-message.h"

/* The loop of profd-elf and its rights, in a fork each. */

static pid_t begin(int *ret_socket) {
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)close(pair[0]);
        _exit(elf_serve(pair[1]) < 0 ? 1 : 0);
    }
    (void)close(pair[1]);
    *ret_socket = pair[0];
    return pid;
}

static int status_of(pid_t pid) {
    int status = -1;

    (void)waitpid(pid, &status, 0);
    return status;
}

TEST(a_build_id_comes_with_what_it_cost) {
    ElfRequest request = {.protocol = ELF_PROTOCOL, .want = ELF_BUILD_ID, .serial = 7};
    _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int socket, none = -1;
    pid_t pid = begin(&socket);
    ElfReply reply;

    CHECK_OK(message_send(socket, &request, sizeof(request), program, 0));
    CHECK_EQ(message_receive(socket, &reply, sizeof(reply), &none), (int)sizeof(reply));
    CHECK_OK(elf_reply_check(&reply, sizeof(reply), &request, &reply));
    CHECK_OK(reply.result);
    CHECK(reply.build_id_size > 0);
    CHECK(reply.cpu_ns > 0);
    closep(&socket);
    CHECK_EQ(status_of(pid), 0);
}

TEST(a_request_that_is_none_ends_it) {
    const struct {
        ElfRequest request;
        size_t size;
        bool has_fd;
    } rows[] = {
        {{.protocol = ELF_PROTOCOL + 1}, sizeof(ElfRequest), true},
        {{.protocol = ELF_PROTOCOL, .want = ELF_WANTS}, sizeof(ElfRequest), true},
        {{.protocol = ELF_PROTOCOL}, sizeof(ElfRequest) - 1, true},
        {{.protocol = ELF_PROTOCOL}, sizeof(ElfRequest), false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int socket;
        pid_t pid = begin(&socket);
        _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        CHECK_OK(
            message_send(socket, &rows[i].request, rows[i].size, rows[i].has_fd ? program : -1, 0));
        CHECK_EQ(WEXITSTATUS(status_of(pid)), 1);
        closep(&socket);
    }
}

/* How many things that it must not do were possible. */
static int try_everything(int file) {
    char program[] = "/bin/true", *argv[] = {program, NULL};
    int failures = 0;
    void *memory;

    if (elf_sandbox() < 0)
        return 100;
    failures += open("/proc/self/exe", O_RDONLY | O_CLOEXEC) >= 0;
    failures += socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
    failures += fork() >= 0;
    failures += kill(getppid(), 0) == 0;
    failures += write(file, "x", 1) > 0;
    failures += execve(program, argv, argv) == 0 || errno != EPERM;
    failures += mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) != MAP_FAILED;
    memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    failures += memory == MAP_FAILED;
    return failures;
}

TEST(it_can_open_nothing_reach_nobody_and_start_nothing) {
    _cleanup_close_ int file = memfd_create("file", MFD_CLOEXEC);
    pid_t pid;

    CHECK_OK(ftruncate(file, 4096));
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        /* The exit of a sanitizer's runtime makes calls that the filter refuses. */
        (void)syscall(SYS_exit_group, try_everything(file));
    CHECK_EQ(status_of(pid), 0);
}

TEST_MAIN()
