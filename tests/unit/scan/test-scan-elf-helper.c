/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-helper.h"

#include "elf/elf-request.h"
#include "keeper-stand-in.h"
#include "test.h"
#include "util/clock.h"
#include "util/fd-message.h"

/* A helper that answers, dies of a file, is killed, or says what makes no sense. */

static Keeper keeper;
static ElfHelper *helper;
static int proc = -1, program = -1;

static void begin(void (*elf)(int socket)) {
    memset(&keeper, 0, sizeof(keeper));
    keeper.root = "";
    keeper.elf = elf;
    proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (proc < 0 || program < 0 || elf_helper_new(&keeper, proc, &helper) < 0)
        abort();
}

static void end(void) {
    helper = elf_helper_free(helper);
    if (keeper.elf_pid > 0) {
        (void)kill(keeper.elf_pid, SIGKILL);
        (void)waitpid(keeper.elf_pid, NULL, 0);
    }
    closep(&proc);
    closep(&program);
}

static void wait_until_ready(void) {
    while (clock_monotonic_ns() < elf_helper_ready_ns(helper))
        (void)usleep(1000);
}

static void receive_one(int socket) {
    uint8_t bytes[sizeof(ElfRequest)];
    int fd = -1;

    if (message_receive(socket, bytes, sizeof(bytes), &fd) < 0)
        _exit(0);
    closep(&fd);
}

TEST(one_helper_answers_for_many_files) {
    BuildId id = {}, again = {};

    begin(NULL);
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    CHECK(id.size > 0);
    CHECK_OK(elf_helper_build_id(helper, program, &again));
    CHECK_EQ(memcmp(&id, &again, sizeof(id)), 0);
    CHECK_EQ(atomic_load(&keeper.n_elf), 1U);
    CHECK(elf_helper_cpu_ns(helper) > 0);
    end();
}

TEST(a_file_that_is_no_elf_file_is_told_apart) {
    _cleanup_close_ int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    BuildId id;

    begin(NULL);
    CHECK_EQ(elf_helper_build_id(helper, fd, &id), -ENOEXEC);
    end();
}

static void crash(int socket) {
    receive_one(socket);
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void exceed_limit(int socket) {
    receive_one(socket);
    (void)raise(SIGPROF);
}

static void fail(int socket) {
    receive_one(socket);
    _exit(3);
}

TEST(the_file_over_which_a_helper_dies_is_to_blame) {
    static void (*const deaths[])(int) = {crash, exceed_limit, fail};
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(deaths); i++) {
        begin(deaths[i]);
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -ECANCELED);
        end();
    }
}

static void be_killed(int socket) {
    receive_one(socket);
    (void)raise(SIGKILL);
}

TEST(a_helper_that_ends_each_time_is_missing_until_one_answers) {
    BuildId id;

    begin(be_killed);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(!elf_helper_is_missing(helper));
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
        wait_until_ready();
    }
    CHECK(elf_helper_is_missing(helper));
    keeper.elf = NULL;
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    CHECK(!elf_helper_is_missing(helper));
    end();
}

TEST(a_helper_that_somebody_kills_is_started_again_and_the_file_is_read) {
    BuildId id;

    begin(be_killed);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
    keeper.elf = NULL;
    wait_until_ready();
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    /* Between two files, too. */
    (void)kill(keeper.elf_pid, SIGKILL);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
    wait_until_ready();
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    end();
}

TEST(a_helper_that_dies_again_and_again_is_started_later_each_time) {
    uint64_t last_ns = 0;
    BuildId id;

    begin(be_killed);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t begin_ns;

        wait_until_ready();
        begin_ns = clock_monotonic_ns();
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
        CHECK(elf_helper_ready_ns(helper) > begin_ns);
        CHECK(elf_helper_ready_ns(helper) - begin_ns > last_ns);
        last_ns = elf_helper_ready_ns(helper) - begin_ns;
        /* Until then nobody is started. */
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
        CHECK_EQ(atomic_load(&keeper.n_elf), i + 1);
    }
    end();
}

static void send_reply(int socket, const ElfReply *reply) {
    receive_one(socket);
    (void)message_send(socket, reply, sizeof(*reply), -1, 0);
    receive_one(socket);
}

static void say_too_much(int socket) {
    send_reply(socket, &(ElfReply){.protocol = ELF_PROTOCOL, .serial = 1, .build_id_size = 21});
}

static void answer_another(int socket) {
    send_reply(socket, &(ElfReply){.protocol = ELF_PROTOCOL, .serial = 2, .build_id_size = 20});
}

static void succeed_with_nothing(int socket) {
    send_reply(socket, &(ElfReply){.protocol = ELF_PROTOCOL, .serial = 1});
}

static void say_an_error_that_is_none(int socket) {
    send_reply(socket, &(ElfReply){.protocol = ELF_PROTOCOL, .serial = 1, .result = 1});
}

static void say_half(int socket) {
    receive_one(socket);
    (void)message_send(socket, "no", 2, -1, 0);
    receive_one(socket);
}

TEST(an_answer_that_makes_no_sense_is_not_believed) {
    static void (*const lies[])(int) = {say_too_much, answer_another, succeed_with_nothing,
                                        say_an_error_that_is_none, say_half};
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        begin(lies[i]);
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -ECANCELED);
        end();
    }
}

TEST_MAIN()
