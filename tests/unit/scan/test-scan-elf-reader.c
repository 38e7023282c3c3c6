/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/elf-reader.h"

#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "make-elf-reader.h"
#include "util/clock.h"

/*
 * Files that are there, deleted, replaced, or never had a path, mapped by processes that live or
 * have ended: the right build id, or none. Each is asked with PROCMAP_QUERY and without.
 */

static uint64_t version;

TEST(a_running_program_has_the_build_id_that_readelf_shows) {
    MappedImage image;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned old = 0; old < 2; old++) {
        pid_t pid;

        begin(old);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
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
        CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        end_process(pid);
        /* Now only the path could tell, and must not. */
        CHECK(elf_reader_build_id(reader, &image, &id, &version) < 0);
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
    for (unsigned old = 0; old < 2; old++) {
        int fd = open(FIRST, O_RDONLY | O_CLOEXEC), memory = memory_for_a_program();
        char *args[] = {"sleep", "1000", NULL}, data[4096];
        ssize_t n;
        pid_t pid;

        begin(old);
        while ((n = read(fd, data, sizeof(data))) > 0)
            CHECK_EQ(write(memory, data, (size_t)n), n);
        pid = fork();
        if (pid == 0) {
            fexecve(memory, args, environ);
            _exit(127);
        }
        CHECK(wait_for_image(pid, &image));
        CHECK_STREQ(image.path, "/memfd:in memory");
        CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        end_process(pid);
        CHECK(elf_reader_build_id(reader, &image, &id, &version) < 0);
        close(fd);
        close(memory);
        end();
    }
}

TEST(a_replaced_mapping_is_not_trusted) {
    MappedImage image, other;
    BuildId id;

    NEEDS_TWO_IDS();
    for (unsigned old = 0; old < 2; old++) {
        pid_t pid;

        begin(old);
        copy(FIRST, program);
        pid = run(program);
        CHECK(wait_for_image(pid, &image));
        other = image;
        /* The same place, but a file that nobody has mapped. */
        other.inode++;
        CHECK(elf_reader_build_id(reader, &other, &id, &version) < 0);
        other = image;
        other.minor++;
        CHECK(elf_reader_build_id(reader, &other, &id, &version) < 0);
        /* The same file, at another place of the same process. */
        other = image;
        other.start = 4096;
        CHECK_OK(elf_reader_build_id(reader, &other, &id, &version));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        /* The same inode number, of a file that was there before. */
        other = image;
        generation_of(program, &other);
        if (other.generation != 0) {
            CHECK_OK(elf_reader_build_id(reader, &other, &id, &version));
            other.generation++;
            CHECK(elf_reader_build_id(reader, &other, &id, &version) < 0);
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
    CHECK_EQ(elf_reader_build_id(reader, &image, &id, &version), -ESTALE);
    generation_of(program, &image);
    if (image.generation != 0) {
        CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
        CHECK_STREQ(hex(&id), readelf(FIRST));
        image.generation++;
        CHECK_EQ(elf_reader_build_id(reader, &image, &id, &version), -ESTALE);
    }
    CHECK_OK(stat(FIRST, &st));
    old = (MappedImage){.pid = (uint32_t)pid,
                        .start = 4096,
                        .major = major(st.st_dev),
                        .minor = minor(st.st_dev),
                        .inode = st.st_ino,
                        .path = FIRST};
    CHECK_OK(elf_reader_build_id(reader, &old, &id, &version));
    CHECK_STREQ(hex(&id), readelf(FIRST));
    end();
}

/* As cp does: the inode stays. */
static void overwrite(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_TRUNC | O_CLOEXEC);
    char data[4096];
    ssize_t n;

    while ((n = read(in, data, sizeof(data))) > 0)
        CHECK_EQ(write(out, data, (size_t)n), n);
    close(in);
    close(out);
}

TEST(a_program_that_is_overwritten_is_another_version_from_then_on) {
    uint64_t changed_ns, began_ns;
    MappedImage image;
    BuildId id;

    NEEDS_TWO_IDS();
    begin(false);
    copy(FIRST, program);
    /* The time of the change must not be that of the next one. */
    usleep(40000);
    end_process(run(program));
    for (unsigned i = 0; i < 2; i++) {
        pid_t pid = run(program);

        CHECK(wait_for_image(pid, &image));
        if (i == 0)
            CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
        CHECK(version != 0);
        CHECK_EQ(elf_reader_check(reader, &image, version, &changed_ns), 0);
        CHECK_EQ(elf_reader_check(reader, &image, 0, &changed_ns), 1);
        end_process(pid);
    }
    began_ns = clock_monotonic_ns();
    overwrite(SECOND, program);
    overwrite(FIRST, program);
    for (unsigned i = 0; i < 2; i++) {
        pid_t pid = run(program);

        CHECK(wait_for_image(pid, &image));
        CHECK_EQ(elf_reader_check(reader, &image, version, &changed_ns), 1);
        CHECK(changed_ns + 20 * NS_PER_MS > began_ns && changed_ns < clock_monotonic_ns());
        end_process(pid);
    }
    image.inode++;
    CHECK(elf_reader_check(reader, &image, version, &changed_ns) < 0);
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
    CHECK(elf_reader_build_id(reader, &image, &id, &version) < 0);
    printf("# the inode number was %sused again\n", st.st_ino == image.inode ? "" : "not ");
    image.generation = 0;
    image.inode = st.st_ino;
    CHECK(elf_reader_build_id(reader, &image, &id, &version) < 0);
    end();
}

TEST(a_file_without_a_build_id_gives_none) {
    char path[64], *data;
    MappedImage image;
    BuildId id;
    int fd;

    for (unsigned old = 0; old < 2; old++) {
        struct stat st;

        begin(old);
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
        CHECK(elf_reader_build_id(reader, &image, &id, &version) < 0);
        image.inode = 0;
        CHECK_EQ(elf_reader_build_id(reader, &image, &id, &version), -ENODATA);
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
    CHECK_OK(elf_reader_build_id(reader, &image, &id, &version));
    CHECK_EQ(atomic_load(&keeper.n_opened), 1U); /* the maps */
    CHECK_EQ(atomic_load(&keeper.n_mapped), 1U);
    CHECK_EQ(atomic_load(&keeper.n_images), 0U);
    end_process(pid);
    end();
}

TEST_MAIN()
