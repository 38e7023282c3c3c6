/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "elf/elf-request.h"
#include "make-elf-reader.h"
#include "util/clock.h"
#include "util/fd-message.h"

/* Unwind tables of mapped files: of files that are deleted, change, or end the helper. */

static TableCache *tables;
static unsigned n_asked;
static uint64_t content;

static int note_asked(void *userdata _unused_, const MappedImage *image _unused_) {
    n_asked++;
    return 0;
}

/* As the scanner does, for one file that is asked for: the state that its table comes to. */
static TableState make_table(const MappedImage *image, uint64_t now_ns, TableAnswer *ret) {
    const UnwindTable *table = NULL;
    TableState state;

    if (!tables && table_cache_new(&(TableCacheOptions){.limit_bytes = 1 << 30, .ask = note_asked},
                                   &tables) < 0)
        abort();
    n_asked = 0;
    if (table_cache_want(tables, image, now_ns) < 0 || n_asked != 1)
        return TABLE_UNKNOWN;
    (void)elf_reader_table(reader, image, tables, ret);
    table_cache_answer(tables, ret, now_ns);
    state = table_cache_find(tables, image, &table);
    return (state == TABLE_READY) == (table != NULL) ? state : TABLE_UNKNOWN;
}

static void end_tables(void) {
    tables = table_cache_free(tables);
    end();
}

TEST(a_running_program_has_a_table_even_if_it_was_deleted) {
    TableAnswer answer;
    MappedImage image;

    NEEDS_TWO_IDS();
    for (unsigned kind = 0; kind < 4; kind++) {
        pid_t pid;

        begin(kind & 1);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        if (kind & 2)
            CHECK_OK(unlink(program));
        CHECK_EQ(make_table(&image, 1, &answer), TABLE_READY);
        CHECK_OK(answer.result);
        CHECK_EQ(atomic_load(&keeper.n_images), 0U);
        end_process(pid);
        end_tables();
    }
}

TEST(a_file_with_two_names_in_mappings_is_read_once) {
    TableAnswer answer;
    MappedImage image;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    copy(FIRST, program);
    pid = run(program);
    CHECK(wait_for_image(pid, &image));
    generation_of(program, &image);
    if (image.generation == 0)
        TEST_SKIP("a file system without generations");
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_READY);
    /* As /proc tells it; nobody could read it now. */
    image.generation = 0;
    CHECK(keeper.elf_pid > 0 && kill(keeper.elf_pid, SIGSTOP) == 0);
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_READY);
    CHECK_EQ(table_cache_counts(tables).files, 2U);
    CHECK_EQ(table_cache_counts(tables).tables, 1U);
    end_process(pid);
    (void)kill(keeper.elf_pid, SIGKILL);
    end_tables();
}

TEST(the_code_that_the_kernel_maps_as_vdso_has_a_table) {
    MappedImage image = {.pid = (uint32_t)getpid(), .start = UINT64_MAX, .path = "[vdso]"};
    const UnwindTable *table = NULL;
    TableAnswer answer;
    uint64_t version;

    begin(false);
    if (getauxval(AT_SYSINFO_EHDR) == 0)
        TEST_SKIP("no vdso");
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_READY);
    CHECK_EQ(table_cache_find(tables, &image, &table), TABLE_READY);
    CHECK(table->header.n_rows > 0);
    CHECK_EQ(atomic_load(&keeper.n_mapped) + atomic_load(&keeper.n_images), 0U);
    version = table_cache_version(tables);
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_READY);
    CHECK_EQ(table_cache_version(tables), version);
    end_tables();
}

static void crash(int socket) {
    uint8_t bytes[sizeof(ElfRequest)];
    int fd = -1;

    if (message_receive(socket, bytes, sizeof(bytes), &fd) >= 0)
        (void)raise(SIGABRT);
}

static void be_killed(int socket) {
    uint8_t bytes[sizeof(ElfRequest)];
    int fd = -1;

    if (message_receive(socket, bytes, sizeof(bytes), &fd) >= 0)
        (void)raise(SIGKILL);
}

static void wait_until_ready(void) {
    while (clock_monotonic_ns() < elf_reader_ready_ns(reader))
        (void)usleep(1000);
}

TEST(a_file_that_crashed_the_helper_is_not_read_again_until_it_changes) {
    TableAnswer answer;
    MappedImage image;
    unsigned n_elf;
    BuildId id;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    copy(FIRST, program);
    pid = run(program);
    CHECK(wait_for_image(pid, &image));
    keeper.elf = crash;
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_REFUSED);
    CHECK_EQ(answer.result, -ECANCELED);
    n_elf = atomic_load(&keeper.n_elf);
    keeper.elf = NULL;
    wait_until_ready();
    /* Minutes later it is looked at again, and known. */
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_REFUSED);
    CHECK_EQ(atomic_load(&keeper.n_elf), n_elf);
    /* Its build id is another matter. */
    CHECK_OK(elf_reader_build_id(reader, &image, &id, &content));
    CHECK_OK(chmod(program, 0711));
    CHECK_EQ(make_table(&image, 1200 * NS_PER_SECOND, &answer), TABLE_READY);
    end_process(pid);
    end_tables();
}

TEST(a_file_is_read_again_after_the_helper_was_killed) {
    TableAnswer answer;
    MappedImage image;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    pid = run(FIRST);
    CHECK(wait_for_image(pid, &image));
    keeper.elf = be_killed;
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_PENDING);
    CHECK_EQ(answer.result, -EAGAIN);
    keeper.elf = NULL;
    wait_until_ready();
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_READY);
    end_process(pid);
    end_tables();
}

/* A library in this process, which anybody may write to while it is mapped. */
static void *map_library(MappedImage *ret) {
    _cleanup_close_ int fd = -1;
    struct stat st;
    void *code;

    copy(FIRST, program);
    fd = open(program, O_RDONLY | O_CLOEXEC);
    code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (code == MAP_FAILED || fstat(fd, &st) < 0)
        abort();
    *ret = (MappedImage){.pid = (uint32_t)getpid(),
                         .start = (uintptr_t)code,
                         .major = major(st.st_dev),
                         .minor = minor(st.st_dev),
                         .inode = st.st_ino,
                         .path = program};
    return code;
}

static void write_in_place(const char *from) {
    char command[512];

    snprintf(command, sizeof(command), "cat %s > %s", from, program);
    if (system(command) != 0)
        abort();
}

/* It reads one file and answers when another one is there. */
static void answer_too_late(int socket) {
    uint8_t bytes[sizeof(ElfRequest)];
    ElfReply reply = {.protocol = ELF_PROTOCOL, .result = -ENODATA};
    ElfRequest request;

    for (int fd = -1; message_receive(socket, bytes, sizeof(bytes), &fd) > 0; closep(&fd)) {
        memcpy(&request, bytes, sizeof(request));
        reply.serial = request.serial;
        write_in_place(SECOND);
        (void)message_send(socket, &reply, sizeof(reply), -1, 0);
    }
}

TEST(a_file_that_changes_while_it_is_read_is_read_again) {
    TableAnswer answer;
    MappedImage image;
    BuildId id;
    void *code;

    NEEDS_TWO_IDS();
    begin(false);
    code = map_library(&image);
    if (image.major == 0)
        TEST_SKIP("a file system without a device of its own");
    keeper.elf = answer_too_late;
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_PENDING);
    CHECK_EQ(answer.result, -EAGAIN);
    write_in_place(FIRST);
    CHECK_EQ(elf_reader_build_id(reader, &image, &id, &content), -EAGAIN);
    keeper.elf = NULL;
    CHECK(keeper.elf_pid > 0 && kill(keeper.elf_pid, SIGKILL) == 0);
    CHECK_EQ(elf_reader_build_id(reader, &image, &id, &content), -EAGAIN);
    wait_until_ready();
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_READY);
    CHECK_OK(elf_reader_build_id(reader, &image, &id, &content));
    CHECK_STREQ(hex(&id), readelf(SECOND));
    (void)munmap(code, 4096);
    end_tables();
}

TEST(a_modified_file_gets_another_table) {
    const UnwindTable *before = NULL, *after = NULL;
    TableAnswer answer;
    MappedImage image;
    uint64_t version;
    uint32_t n_rows;
    void *code;

    NEEDS_TWO_IDS();
    begin(false);
    code = map_library(&image);
    if (image.major == 0)
        TEST_SKIP("a file system without a device of its own");
    CHECK_EQ(make_table(&image, 1, &answer), TABLE_READY);
    CHECK_EQ(table_cache_find(tables, &image, &before), TABLE_READY);
    version = table_cache_version(tables);
    n_rows = before->header.n_rows;
    /* Nothing has changed. */
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_READY);
    CHECK_EQ(table_cache_version(tables), version);
    write_in_place(SECOND);
    CHECK_EQ(make_table(&image, 1200 * NS_PER_SECOND, &answer), TABLE_READY);
    CHECK_EQ(table_cache_find(tables, &image, &after), TABLE_READY);
    CHECK(table_cache_version(tables) != version);
    CHECK(after->header.n_rows != n_rows);
    CHECK_EQ(table_cache_counts(tables).tables, 1U);
    write_in_place("/etc/passwd");
    CHECK_EQ(make_table(&image, 1800 * NS_PER_SECOND, &answer), TABLE_REFUSED);
    CHECK_EQ(table_cache_counts(tables).bytes, 0U);
    (void)munmap(code, 4096);
    end_tables();
}

TEST_MAIN()
