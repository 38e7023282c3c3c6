/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "elf/server.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "elf/elf-request.h"
#include "elf/sealed-file.h"
#include "test.h"
#include "unwind/compile/unwind-compile.h"
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

TEST(a_build_id_comes_with_the_cpu_time_that_it_took) {
    ElfRequest request = {.protocol = ELF_PROTOCOL, .want = ELF_BUILD_ID, .serial = 7};
    _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int socket, none = -1;
    pid_t pid = begin(&socket);
    ElfReply reply;

    CHECK_OK(message_send(socket, &request, sizeof(request), program, 0));
    CHECK_EQ(message_receive(socket, &reply, sizeof(reply), &none), (int)sizeof(reply));
    CHECK_OK(elf_reply_check(&reply, sizeof(reply), false, &request, &reply));
    CHECK_OK(reply.result);
    CHECK(reply.build_id_size > 0);
    CHECK(reply.cpu_ns > 0);
    closep(&socket);
    CHECK_EQ(status_of(pid), 0);
}

/* What it answers about a file; -1: nothing. */
static int ask(int socket, ElfWant want, int file, ElfReply *ret, int *ret_fd) {
    static uint64_t serial;
    ElfRequest request = {.protocol = ELF_PROTOCOL, .want = want, .serial = ++serial};

    if (message_send(socket, &request, sizeof(request), file, 0) < 0 ||
        message_receive(socket, ret, sizeof(*ret), ret_fd) != (int)sizeof(*ret) ||
        elf_reply_check(ret, sizeof(*ret), *ret_fd >= 0, &request, ret) < 0)
        return -1;
    return 0;
}

TEST(a_table_comes_in_a_sealed_file) {
    _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), file = -1;
    _cleanup_(buffer_done) Buffer image = {};
    ElfReply reply;
    uint8_t *bytes;
    int socket;
    pid_t pid = begin(&socket);

    CHECK_OK(unwind_compile_fd(program, &image));
    CHECK_OK(ask(socket, ELF_UNWIND, program, &reply, &file));
    CHECK_OK(reply.result);
    CHECK_EQ(reply.file_size, image.size);
    bytes = malloc(image.size + 1);
    CHECK(bytes);
    CHECK_EQ(pread(file, bytes, image.size + 1, 0), (ssize_t)image.size);
    CHECK_EQ(memcmp(bytes, image.data, image.size), 0);
    free(bytes);
    CHECK_EQ(fcntl(file, F_GET_SEALS) & ELF_SEALS, ELF_SEALS);
    CHECK(pwrite(file, "x", 1, 0) < 0 && errno == EPERM);
    CHECK(ftruncate(file, 1) < 0 && errno == EPERM);
    CHECK(ftruncate(file, 1 << 20) < 0 && errno == EPERM);
    CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 && errno == EPERM);
    closep(&socket);
    CHECK_EQ(status_of(pid), 0);
}

TEST(symbols_and_code_maps_come_in_sealed_files) {
    static const char text[] = "7f00 10 made\nnonsense\n";
    _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), reduced = -1,
                        map = memfd_create("map", MFD_CLOEXEC), lines = -1, none = -1;
    uint8_t bytes[64];
    ElfReply reply;
    int socket;
    pid_t pid = begin(&socket);

    CHECK_OK(ask(socket, ELF_SYMBOLS, program, &reply, &reduced));
    CHECK_OK(reply.result);
    CHECK(reply.build_id_size > 0);
    CHECK(sealed_file_stays(reduced, reply.file_size));
    CHECK(!sealed_file_stays(reduced, reply.file_size + 1));
    CHECK_EQ(pread(reduced, bytes, 4, 0), 4);
    CHECK_EQ(memcmp(bytes, ELFMAG, SELFMAG), 0);
    CHECK_EQ(write(map, text, strlen(text)), (ssize_t)strlen(text));
    CHECK(!sealed_file_stays(map, strlen(text)));
    CHECK_OK(ask(socket, ELF_CODE_MAP, map, &reply, &lines));
    CHECK_OK(reply.result);
    CHECK_EQ(reply.file_size, 13);
    CHECK_EQ(pread(lines, bytes, sizeof(bytes), 0), 13);
    CHECK_EQ(memcmp(bytes, "7f00 10 made\n", 13), 0);
    /* Neither takes what is for the other. */
    CHECK_OK(ask(socket, ELF_SYMBOLS, map, &reply, &none));
    CHECK_EQ(reply.result, -ENOEXEC);
    CHECK_OK(ask(socket, ELF_CODE_MAP, program, &reply, &none));
    CHECK(reply.result < 0);
    closep(&socket);
    CHECK_EQ(status_of(pid), 0);
}

/* A program with two executable segments, and with .eh_frame where its header says. */
typedef struct Hostile {
    Elf64_Ehdr header;
    Elf64_Phdr segments[2];
    Elf64_Shdr sections[3];
    char names[16];
    uint8_t frames[64];
} Hostile;

static Hostile hostile(uint64_t second_at, uint64_t frames_size) {
    Hostile h = {
        .header = {.e_type = ET_DYN,
                   .e_machine = EM_X86_64,
                   .e_phoff = offsetof(Hostile, segments),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 2,
                   .e_shoff = offsetof(Hostile, sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 3,
                   .e_shstrndx = 2},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_X, .p_filesz = 4096},
                     {.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = second_at, .p_filesz = 4096}},
        .sections = {{.sh_type = SHT_NULL},
                     {.sh_type = SHT_PROGBITS,
                      .sh_flags = SHF_ALLOC,
                      .sh_name = 1,
                      .sh_offset = offsetof(Hostile, frames),
                      .sh_size = frames_size},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(Hostile, names),
                      .sh_size = sizeof(h.names)}},
        .names = "\0.eh_frame",
    };

    memcpy(h.header.e_ident, ELFMAG "\2\1\1", EI_VERSION + 1);
    memset(h.frames, 0xff, sizeof(h.frames));
    return h;
}

TEST(a_file_above_the_limits_is_refused_and_the_next_one_is_read) {
    const struct {
        Hostile file;
        off_t size; /* with a hole behind it */
        int result;
    } rows[] = {
        {hostile(1ULL << 33, 64), 4096, -E2BIG},             /* code beyond 4 GiB */
        {hostile(4096, 1ULL << 40), 4096, -E2BIG},           /* more .eh_frame than any file */
        {hostile(4096, 60 << 20), 4096, -EBADMSG},           /* more than the file */
        {hostile(4096, 60 << 20), 61 << 20, -ENODATA},       /* a hole, which says nothing */
        {hostile(UINT64_MAX - 4096, UINT64_MAX), 0, -E2BIG}, /* sums that wrap */
    };
    _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ElfReply reply;
    int socket;
    pid_t pid = begin(&socket);

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_close_ int file = memfd_create("hostile", MFD_CLOEXEC), none = -1, table = -1;

        CHECK_EQ(pwrite(file, &rows[i].file, sizeof(Hostile), 0), (ssize_t)sizeof(Hostile));
        CHECK(rows[i].size == 0 || ftruncate(file, rows[i].size) == 0);
        CHECK_OK(ask(socket, ELF_UNWIND, file, &reply, &none));
        CHECK_EQ(reply.result, rows[i].result);
        CHECK_OK(ask(socket, ELF_UNWIND, program, &reply, &table));
        CHECK_OK(reply.result);
    }
    closep(&socket);
    CHECK_EQ(status_of(pid), 0);
}

TEST(a_malformed_request_ends_the_helper) {
    const struct {
        ElfRequest request;
        size_t size;
        bool has_fd;
        int status;
    } rows[] = {
        /* Which is nobody's fault. */
        {{.protocol = ELF_PROTOCOL + 1}, sizeof(ElfRequest), true, 0},
        {{.protocol = ELF_PROTOCOL, .want = ELF_WANTS}, sizeof(ElfRequest), true, 1},
        {{.protocol = ELF_PROTOCOL}, sizeof(ElfRequest) - 1, true, 1},
        {{.protocol = ELF_PROTOCOL}, sizeof(ElfRequest), false, 1},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int socket;
        pid_t pid = begin(&socket);
        _cleanup_close_ int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        CHECK_OK(
            message_send(socket, &rows[i].request, rows[i].size, rows[i].has_fd ? program : -1, 0));
        CHECK_EQ(WEXITSTATUS(status_of(pid)), rows[i].status);
        closep(&socket);
    }
}

/* How many things that it must not do were possible. */
static int try_everything(int file) {
    char program[] = "/bin/true", *argv[] = {program, NULL};
    int failures = 0, sealed = -1;
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
    /* It answers with memory of one kind, sealed, and changes no descriptor otherwise. */
    failures += sealed_file_new((Bytes){.data = (const uint8_t *)"x", .size = 1}, &sealed) < 0;
    failures += memfd_create("huge", MFD_HUGETLB) >= 0 || errno != EPERM;
    failures += fcntl(file, F_SETFL, 0) == 0;
    failures += fcntl(file, F_DUPFD, 0) >= 0;
    failures += ftruncate(file, 1) == 0;
    return failures;
}

TEST(the_helper_cannot_open_files_connect_or_start_programs) {
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
