/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "elf/elf-request.h"
#include "keeper-stand-in.h"
#include "test.h"
#include "util/clock.h"
#include "util/fd-message.h"
#include "util/file.h"

/*
 * Files that are there, deleted, replaced, or never had a path, mapped by processes that live or
 * have ended: the right build id, or none. Each is asked with PROCMAP_QUERY and without.
 */

#define FIRST  "/bin/sleep"
#define SECOND "/bin/cat"

static char folder[] = "/tmp/test-scan-elf-reader-XXXXXX";
static char program[sizeof(folder) + 16];

static Keeper keeper;
static int proc = -1;
static ProcessReader *processes;
static ElfReader *reader;

static void begin(bool copies) {
    strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(program, sizeof(program), "%s/program", folder);
    memset(&keeper, 0, sizeof(keeper));
    keeper.root = "";
    keeper.copies = copies;
    proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc < 0 || process_reader_new(proc, &keeper, &processes) < 0 ||
        elf_reader_new(&keeper, processes, proc, &reader) < 0)
        abort();
}

static void end(void) {
    char command[256];

    reader = elf_reader_free(reader);
    processes = process_reader_free(processes);
    closep(&proc);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        abort();
}

static void copy(const char *from, const char *to) {
    char command[512];

    snprintf(command, sizeof(command), "cp %s %s.new && mv %s.new %s", from, to, to, to);
    if (system(command) != 0)
        abort();
}

static pid_t run(const char *path) {
    char *args[] = {"sleep", "1000", NULL};
    pid_t pid;

    if (posix_spawn(&pid, path, NULL, NULL, args, NULL) != 0)
        abort();
    return pid;
}

static void end_process(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The first executable mapping of a file; its path without " (deleted)", as it was when mapped. */
static bool find_image(pid_t pid, MappedImage *ret) {
    static char name[4096];
    unsigned long start, inode;
    unsigned major, minor;
    char path[64], line[8192], permissions[5];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = sscanf(line, "%lx-%*x %4s %*x %x:%x %lu %4095[^\n]", &start, permissions, &major,
                       &minor, &inode, name) == 6 &&
                permissions[2] == 'x' && inode != 0;
    if (f)
        fclose(f);
    if (strstr(name, " (deleted)"))
        *strstr(name, " (deleted)") = '\0';
    *ret = (MappedImage){.pid = (uint32_t)pid,
                         .start = start,
                         .major = major,
                         .minor = minor,
                         .inode = inode,
                         .path = name};
    return found;
}

static void generation_of(const char *path, MappedImage *image) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    long version = 0;

    if (fd >= 0 && ioctl(fd, FS_IOC_GETVERSION, &version) == 0)
        image->generation = (uint32_t)version;
}

static const char *hex(const BuildId *id) {
    static char text[2 * BUILD_ID_SIZE_MAX + 1];

    text[0] = '\0';
    for (size_t i = 0; i < id->size; i++)
        snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
    return text;
}

/* The build id that readelf prints for a file. */
static const char *readelf(const char *path) {
    static char id[64];
    char command[512], line[512];
    FILE *f;

    id[0] = '\0';
    snprintf(command, sizeof(command), "readelf -n %s 2>/dev/null", path);
    f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, " Build ID: %63s", id);
    if (f)
        pclose(f);
    return id;
}

/* Whether a mapping can be opened, which takes more than the right to trace. */
static bool has_map_files(void) {
    return geteuid() == 0;
}

#define NEEDS_TWO_IDS()                                                                            \
    do {                                                                                           \
        char first[64];                                                                            \
        snprintf(first, sizeof(first), "%s", readelf(FIRST));                                      \
        if (first[0] == '\0' || strcmp(first, readelf(SECOND)) == 0)                               \
            TEST_SKIP("no readelf, or programs without build ids");                                \
        if (!has_map_files())                                                                      \
            TEST_SKIP("no root, so mappings cannot be opened");                                    \
    } while (0)

static bool wait_for_image(pid_t pid, MappedImage *ret) {
    for (unsigned i = 0; i < 1000; i++) {
        struct stat of_file, of_process;
        char exe[64];

        /* Between fork and exec it is still us. */
        snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
        if (stat(exe, &of_process) == 0 && stat("/proc/self/exe", &of_file) == 0 &&
            of_process.st_ino != of_file.st_ino && find_image(pid, ret))
            return true;
        usleep(1000);
    }
    return false;
}

TEST(a_running_program_has_the_build_id_that_readelf_shows) {
    MappedImage image;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned copies = 0; copies < 2; copies++) {
        pid_t pid;

        begin(copies);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        CHECK_OK(elf_reader_build_id(reader, &image, &id));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        CHECK_EQ(atomic_load(&keeper.n_images), 0U);
        end_process(pid);
        end();
    }
}

TEST(a_replaced_or_deleted_program_keeps_its_build_id) {
    MappedImage image;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned kind = 0; kind < 4; kind++) {
        pid_t pid;

        begin(kind & 1);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        if (kind & 2)
            CHECK_OK(unlink(program));
        else
            copy(SECOND, program);
        CHECK_OK(elf_reader_build_id(reader, &image, &id));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        end_process(pid);
        /* Now only the path could tell, and must not. */
        CHECK(elf_reader_build_id(reader, &image, &id) < 0);
        end();
    }
}

/* Newer kernels want to be told that it is to be run, older ones refuse the flag. */
static int memory_for_a_program(void) {
    enum { TO_BE_RUN = 0x10 };
    int fd = memfd_create("in memory", MFD_CLOEXEC | TO_BE_RUN);

    return fd < 0 ? memfd_create("in memory", MFD_CLOEXEC) : fd;
}

TEST(a_program_without_a_path_has_its_build_id) {
    MappedImage image;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned copies = 0; copies < 2; copies++) {
        int fd = open(FIRST, O_RDONLY | O_CLOEXEC), memory = memory_for_a_program();
        char *args[] = {"sleep", "1000", NULL}, data[4096];
        ssize_t n;
        pid_t pid;

        begin(copies);
        while ((n = read(fd, data, sizeof(data))) > 0)
            CHECK_EQ(write(memory, data, (size_t)n), n);
        pid = fork();
        if (pid == 0) {
            fexecve(memory, args, environ);
            _exit(127);
        }
        CHECK(wait_for_image(pid, &image));
        CHECK_STREQ(image.path, "/memfd:in memory");
        CHECK_OK(elf_reader_build_id(reader, &image, &id));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        end_process(pid);
        CHECK(elf_reader_build_id(reader, &image, &id) < 0);
        close(fd);
        close(memory);
        end();
    }
}

TEST(a_replaced_mapping_is_not_trusted) {
    MappedImage image, other;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned copies = 0; copies < 2; copies++) {
        pid_t pid;

        begin(copies);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        other = image;
        /* The same place, but a file that nobody has mapped. */
        other.inode++;
        CHECK(elf_reader_build_id(reader, &other, &id) < 0);
        other = image;
        other.minor++;
        CHECK(elf_reader_build_id(reader, &other, &id) < 0);
        /* The same file, at another place of the same process. */
        other = image;
        other.start = 4096;
        CHECK_OK(elf_reader_build_id(reader, &other, &id));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        /* The same inode number, of a file that was there before. */
        other = image;
        generation_of(program, &other);
        if (other.generation != 0) {
            CHECK_OK(elf_reader_build_id(reader, &other, &id));
            other.generation++;
            CHECK(elf_reader_build_id(reader, &other, &id) < 0);
        }
        end_process(pid);
        end();
    }
}

TEST(the_file_of_an_ended_program_is_identified_by_generation_or_age) {
    MappedImage image, old;
    struct stat st;
    BuildId id;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    copy(FIRST, program);
    pid = run(program);
    CHECK(wait_for_image(pid, &image));
    end_process(pid);
    CHECK_OK(stat(program, &st));
    if (image.major == 0 || major(st.st_dev) != image.major)
        TEST_SKIP("a file system without a device of its own");
    /* Too young to be known without a generation. */
    CHECK_EQ(elf_reader_build_id(reader, &image, &id), -ESTALE);
    generation_of(program, &image);
    if (image.generation != 0) {
        CHECK_OK(elf_reader_build_id(reader, &image, &id));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        image.generation++;
        CHECK_EQ(elf_reader_build_id(reader, &image, &id), -ESTALE);
    }
    CHECK_OK(stat(FIRST, &st));
    old = (MappedImage){.pid = (uint32_t)pid,
                        .start = 4096,
                        .major = major(st.st_dev),
                        .minor = minor(st.st_dev),
                        .inode = st.st_ino,
                        .path = FIRST};
    CHECK_OK(elf_reader_build_id(reader, &old, &id));
    CHECK_STREQ(hex(&id), readelf(FIRST));
    end();
}

TEST(a_reused_inode_number_is_not_trusted) {
    MappedImage image;
    struct stat st;
    BuildId id;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    copy(FIRST, program);
    pid = run(program);
    CHECK(wait_for_image(pid, &image));
    generation_of(program, &image);
    end_process(pid);
    CHECK_OK(unlink(program));
    /* Most file systems give the number to the next file. */
    copy(SECOND, program);
    CHECK_OK(stat(program, &st));
    CHECK(elf_reader_build_id(reader, &image, &id) < 0);
    printf("# the inode number was %sused again\n", st.st_ino == image.inode ? "" : "not ");
    image.generation = 0;
    image.inode = st.st_ino;
    CHECK(elf_reader_build_id(reader, &image, &id) < 0);
    end();
}

TEST(a_file_without_a_build_id_gives_none) {
    char path[64], *data;
    MappedImage image;
    BuildId id;
    int fd;

    for (unsigned copies = 0; copies < 2; copies++) {
        struct stat st;

        begin(copies);
        snprintf(path, sizeof(path), "%s/text", folder);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
        CHECK_EQ(write(fd, "no program", 10), 10);
        data = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
        CHECK(data != MAP_FAILED);
        CHECK_OK(fstat(fd, &st));
        image = (MappedImage){.pid = (uint32_t)getpid(),
                              .start = (uintptr_t)data,
                              .major = major(st.st_dev),
                              .minor = minor(st.st_dev),
                              .inode = st.st_ino,
                              .path = path};
        CHECK(elf_reader_build_id(reader, &image, &id) < 0);
        image.inode = 0;
        CHECK_EQ(elf_reader_build_id(reader, &image, &id), -ENODATA);
        munmap(data, 4096);
        close(fd);
        end();
    }
}

TEST(a_file_is_opened_once_through_its_mapping) {
    MappedImage image;
    BuildId id;
    pid_t pid;

    NEEDS_TWO_IDS();
    begin(false);
    pid = run(FIRST);
    CHECK(wait_for_image(pid, &image));
    CHECK_OK(elf_reader_build_id(reader, &image, &id));
    CHECK_EQ(atomic_load(&keeper.n_opened), 1U); /* the maps */
    CHECK_EQ(atomic_load(&keeper.n_mapped), 1U);
    CHECK_EQ(atomic_load(&keeper.n_images), 0U);
    end_process(pid);
    end();
}

static TableCache *tables;
static unsigned n_asked;

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
    CHECK_OK(elf_reader_build_id(reader, &image, &id));
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
    CHECK_EQ(elf_reader_build_id(reader, &image, &id), -EAGAIN);
    keeper.elf = NULL;
    CHECK(keeper.elf_pid > 0 && kill(keeper.elf_pid, SIGKILL) == 0);
    CHECK_EQ(elf_reader_build_id(reader, &image, &id), -EAGAIN);
    wait_until_ready();
    CHECK_EQ(make_table(&image, 600 * NS_PER_SECOND, &answer), TABLE_READY);
    CHECK_OK(elf_reader_build_id(reader, &image, &id));
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
