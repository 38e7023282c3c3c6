/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-helper.h"

#include <link.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "elf/elf-request.h"
#include "elf/sealed-file.h"
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

TEST(a_file_that_is_not_elf_has_its_own_error) {
    _cleanup_close_ int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    BuildId id;

    begin(NULL);
    CHECK_EQ(elf_helper_build_id(helper, fd, &id), -ENOEXEC);
    end();
}

static void crash_now(void) {
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void crash(int socket) {
    receive_one(socket);
    crash_now();
}

static void exceed_limit(int socket) {
    receive_one(socket);
    (void)raise(SIGPROF);
}

static void fail(int socket) {
    receive_one(socket);
    _exit(3);
}

TEST(a_file_that_crashes_the_helper_is_to_blame) {
    static void (*const deaths[])(int) = {crash, exceed_limit, fail};
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(deaths); i++) {
        begin(deaths[i]);
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -ECANCELED);
        /* What it cost counts, although nobody has said how much it was. */
        CHECK(elf_helper_cpu_ns(helper) > 0);
        CHECK(deaths[i] != exceed_limit ||
              elf_helper_cpu_ns(helper) == ELF_LIMIT_S * NS_PER_SECOND);
        end();
    }
}

static void answer_and_crash(int socket) {
    ElfReply reply = {.protocol = ELF_PROTOCOL, .serial = 1, .result = -ENODATA};

    receive_one(socket);
    (void)message_send(socket, &reply, sizeof(reply), -1, 0);
    crash_now();
}

TEST(no_file_is_blamed_for_a_helper_that_dies_between_files) {
    BuildId id;
    siginfo_t ended;

    begin(answer_and_crash);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -ENODATA);
    CHECK_OK(waitid(P_PID, (id_t)keeper.elf_pid, &ended, WEXITED | WNOWAIT));
    CHECK_EQ(ended.si_status, SIGSEGV);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
    keeper.elf = NULL;
    wait_until_ready();
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    end();
}

static void be_killed(int socket) {
    receive_one(socket);
    (void)raise(SIGKILL);
}

TEST(a_helper_that_always_ends_counts_as_missing_until_one_answers) {
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

TEST(after_a_kill_the_helper_is_started_again_and_the_file_is_read) {
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

TEST(a_helper_that_keeps_dying_is_started_after_growing_delays) {
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

TEST(a_malformed_answer_is_refused) {
    static void (*const lies[])(int) = {say_too_much, answer_another, succeed_with_nothing,
                                        say_an_error_that_is_none, say_half};
    BuildId id;

    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        begin(lies[i]);
        CHECK_EQ(elf_helper_build_id(helper, program, &id), -ECANCELED);
        end();
    }
}

/* Of the first one, which is the program. */
static int note_bias(struct dl_phdr_info *info, size_t size _unused_, void *userdata) {
    *(uint64_t *)userdata = info->dlpi_addr;
    return 1;
}

TEST(a_table_has_rules_for_the_code_of_the_file) {
    uint64_t bias = 1;
    _cleanup_(mapped_table_freep) MappedTable *table = NULL, *again = NULL, *none = NULL;
    _cleanup_close_ int text = open("/etc/passwd", O_RDONLY | O_CLOEXEC);

    begin(NULL);
    CHECK_OK(elf_helper_table(helper, program, &table));
    (void)dl_iterate_phdr(note_bias, &bias);
    CHECK_EQ(unwind_table_find(&table->table, (uintptr_t)note_bias - bias).kind, UNWIND_OFFSET);
    CHECK_EQ(unwind_table_find(&table->table, (uintptr_t)&bias - bias).kind, UNWIND_NONE);
    CHECK_OK(elf_helper_table(helper, program, &again));
    CHECK(mapped_table_equals(table, again));
    CHECK_EQ(elf_helper_table(helper, text, &none), -ENOEXEC);
    CHECK(!none);
    CHECK_EQ(atomic_load(&keeper.n_elf), 1U);
    end();
}

TEST(a_table_is_requested_again_after_a_kill_and_not_after_a_crash) {
    _cleanup_(mapped_table_freep) MappedTable *table = NULL;

    begin(be_killed);
    CHECK_EQ(elf_helper_table(helper, program, &table), -EAGAIN);
    keeper.elf = crash;
    wait_until_ready();
    CHECK_EQ(elf_helper_table(helper, program, &table), -ECANCELED);
    keeper.elf = NULL;
    wait_until_ready();
    CHECK_OK(elf_helper_table(helper, program, &table));
    end();
}

static void be_of_another_version(int socket) {
    send_reply(socket, &(ElfReply){.protocol = ELF_PROTOCOL + 1, .serial = 1});
}

TEST(a_helper_of_another_version_refuses_no_file) {
    BuildId id;

    begin(be_of_another_version);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -EAGAIN);
    keeper.elf = NULL;
    wait_until_ready();
    CHECK_OK(elf_helper_build_id(helper, program, &id));
    end();
}

/* As a read of a file system that does not answer: whoever has a child by CLONE_VFORK waits in the
 * kernel until that ends, and no look shows what for. ThreadSanitizer makes vfork() a fork(). */
static void wait_in_kernel(unsigned ms) {
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);

    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)usleep(ms * 1000);
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
}

static void be_stuck(int socket) {
    receive_one(socket);
    wait_in_kernel(60000);
}

static void answer_slowly(int socket) {
    ElfReply reply = {.protocol = ELF_PROTOCOL, .serial = 1, .result = -ENODATA};

    receive_one(socket);
    for (unsigned i = 0; i < 45; i++)
        wait_in_kernel(100);
    (void)message_send(socket, &reply, sizeof(reply), -1, 0);
    receive_one(socket);
}

TEST(a_helper_in_an_endless_wait_is_abandoned) {
    BuildId id;

    begin(be_stuck);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -ETIMEDOUT);
    end();
}

TEST(a_helper_that_reads_a_slow_disk_is_waited_for) {
    BuildId id;

    begin(answer_slowly);
    CHECK_EQ(elf_helper_build_id(helper, program, &id), -ENODATA);
    end();
}

/* A reply with a file of which one thing is wrong. */
static void send_table(int socket, int file, uint64_t size) {
    ElfReply reply = {.protocol = ELF_PROTOCOL, .serial = 1, .file_size = size};

    receive_one(socket);
    (void)message_send(socket, &reply, sizeof(reply), file, 0);
    receive_one(socket);
}

static UnwindHeader good_header(void) {
    return (UnwindHeader){.magic = UNWIND_MAGIC,
                          .version = UNWIND_VERSION,
                          .machine = EM_X86_64,
                          .n_rules = 1,
                          .n_pages = 2};
}

typedef struct Image {
    UnwindHeader header;
    UnwindRule rule;
    uint32_t pages[2];
} Image;

static int seal(const Image *image, size_t size) {
    int fd = -1;

    if (sealed_file_new((Bytes){.data = (const uint8_t *)image, .size = size}, &fd) < 0)
        abort();
    return fd;
}

static void send_good(int socket) {
    Image image = {.header = good_header()};

    send_table(socket, seal(&image, sizeof(image)), sizeof(image));
}

static void send_no_file(int socket) {
    send_table(socket, -1, sizeof(Image));
}

static void send_unsealed(int socket) {
    Image image = {.header = good_header()};
    int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (write(fd, &image, sizeof(image)) == sizeof(image) &&
        fcntl(fd, F_ADD_SEALS, ELF_SEALS & ~F_SEAL_SHRINK) == 0)
        send_table(socket, fd, sizeof(image));
}

static void send_a_file_on_disk(int socket) {
    send_table(socket, open("/proc/self/exe", O_RDONLY), sizeof(Image));
}

static void send_another_size(int socket) {
    Image image = {.header = good_header()};

    send_table(socket, seal(&image, sizeof(image)), sizeof(image) + 1);
}

static void send_more_than_its_header_says(int socket) {
    struct {
        Image image;
        uint64_t more;
    } large = {.image.header = good_header()};

    send_table(socket, seal(&large.image, sizeof(large)), sizeof(large));
}

static void send_no_table(int socket) {
    Image image = {.header = good_header()};

    image.header.n_pages = 3;
    send_table(socket, seal(&image, sizeof(image)), sizeof(image));
}

static void send_half_a_header(int socket) {
    Image image = {.header = good_header()};

    send_table(socket, seal(&image, 8), 8);
}

TEST(an_unsealed_or_malformed_table_is_not_used) {
    static void (*const lies[])(int) = {send_no_file,        send_unsealed,
                                        send_a_file_on_disk, send_another_size,
                                        send_no_table,       send_more_than_its_header_says,
                                        send_half_a_header};
    _cleanup_(mapped_table_freep) MappedTable *table = NULL;

    begin(send_good);
    CHECK_OK(elf_helper_table(helper, program, &table));
    end();
    table = mapped_table_free(table);
    for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
        begin(lies[i]);
        CHECK_EQ(elf_helper_table(helper, program, &table), -ECANCELED);
        CHECK(!table);
        end();
    }
}

TEST_MAIN()
