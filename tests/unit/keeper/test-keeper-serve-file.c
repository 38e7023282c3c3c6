/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-served.h"

#include <elf.h>
#include <endian.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

/* Files that the keeper opens for a recorder, and those that it refuses. */

TEST(files_of_the_kernel_are_opened_and_namespaces_read) {
    KeeperNamespace spaces[KEEPER_NAMESPACES];
    struct stat status;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, &fd));
    (void)close(fd);
    r = keeper_open_file(served.keeper, KEEPER_MODULES, &fd);
    CHECK(r == 0 || r == -ENOENT); /* a kernel may have no modules */
    if (r == 0)
        (void)close(fd);
    CHECK_OK(keeper_read_namespaces(served.keeper, (uint32_t)getpid(), spaces));
    CHECK_OK(stat("/proc/self/ns/mnt", &status));
    CHECK_EQ(spaces[5].inode, status.st_ino);
    CHECK_EQ(spaces[5].dev, status.st_dev);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_proc_without_hidden_processes_is_opened_if_permitted) {
    _cleanup_close_ int proc = -1, file = -1;
    struct stat status, ours;
    Served served;
    char path[32];
    int r;

    CHECK_OK(served_begin(&served));
    r = keeper_open_file(served.keeper, KEEPER_PROC, &proc);
    CHECK_EQ(served_end(&served), 0);
    if (r == -EPERM)
        TEST_SKIP("no right to mount");
    CHECK_OK(r);
    snprintf(path, sizeof(path), "%d/stat", (int)getpid());
    file = openat(proc, path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    CHECK_OK(fstat(file, &status));
    CHECK_OK(stat("/proc/self/stat", &ours));
    /* Another mount without the options of the system's /proc. */
    CHECK(status.st_dev != ours.st_dev);
    CHECK(openat(proc, "sys/kernel/hostname", O_WRONLY | O_CLOEXEC) < 0);
}

static int find_own_text(uint64_t *ret_start, uint64_t *ret_end) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    int r = -ENOENT;

    while (r < 0 && maps && fgets(line, sizeof(line), maps))
        if (strstr(line, " r-xp ") && strstr(line, "test-keeper-serve") &&
            sscanf(line, "%" SCNx64 "-%" SCNx64, ret_start, ret_end) == 2)
            r = 0;
    if (maps)
        (void)fclose(maps);
    return r;
}

/* Opens the file by its path, as a recorder would; closes the descriptor. */
static int try_image(const Served *served, uint32_t recorder, const char *path) {
    KeeperFileId id;
    int fd = -1, r = keeper_open_image(served->keeper, recorder, path, &id, &fd);

    closep(&fd);
    return r;
}

TEST(mapped_and_named_files_are_opened_only_if_elf) {
    uint64_t start, end;
    struct stat status;
    KeeperFileId id;
    char magic[4];
    uint32_t recorder;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    CHECK_OK(find_own_text(&start, &end));
    r = keeper_open_mapped(served.keeper, (uint32_t)getpid(), start, end, &id, &fd);
    if (r == -EPERM) {
        (void)served_end(&served);
        TEST_SKIP("map_files needs root");
    }
    CHECK_OK(r);
    CHECK_EQ(pread(fd, magic, 4, 0), 4);
    CHECK_EQ(memcmp(magic, "\177ELF", 4), 0);
    CHECK_OK(fstat(fd, &status));
    CHECK_EQ(id.inode, status.st_ino);
    CHECK_EQ(id.major, major(status.st_dev));
    CHECK_EQ(id.minor, minor(status.st_dev));
    CHECK_EQ(id.size, (uint64_t)status.st_size);
    CHECK_EQ(id.ctime_ns, status.st_ctim.tv_sec * 1000000000LL + status.st_ctim.tv_nsec);
    (void)close(fd);
    CHECK_EQ(keeper_open_mapped(served.keeper, (uint32_t)getpid(), start, end + 1, &id, &fd),
             -ENOENT);
    recorder = begin_recorder(0);
    CHECK(recorder > 0);
    CHECK_OK(try_image(&served, recorder, "/proc/../bin/sh"));
    CHECK_EQ(try_image(&served, recorder, "/etc/passwd"), -ENOEXEC);
    CHECK_EQ(try_image(&served, recorder, "/dev/null"), -ENOEXEC);
    CHECK_EQ(try_image(&served, recorder, "/tmp"), -ENOEXEC);
    CHECK_EQ(try_image(&served, recorder, "/nowhere"), -ENOENT);
    CHECK_EQ(try_image(&served, recorder, "/proc/self/exe"), -ELOOP);
    end_recorder(recorder);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_fifo_is_not_waited_for_and_links_are_not_followed) {
    uint32_t recorder;
    Served served;

    CHECK_OK(mkfifo(own_path("fifo"), 0600));
    CHECK_OK(symlink("/etc/shadow", own_path("link")));
    CHECK_OK(served_begin(&served));
    recorder = begin_recorder(0);
    CHECK_EQ(try_image(&served, recorder, own_path("fifo")), -ENOEXEC);
    CHECK(try_image(&served, recorder, own_path("link")) < 0);
    end_recorder(recorder);
    (void)unlink(own_path("fifo"));
    (void)unlink(own_path("link"));
    CHECK_EQ(served_end(&served), 0);
}

/* As long as a header, with nothing behind it. */
static int make_elf(const char *path, uint16_t type, mode_t mode) {
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64,
                                     __BYTE_ORDER == __BIG_ENDIAN ? ELFDATA2MSB : ELFDATA2LSB},
                         .e_type = type};
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, &header, sizeof(header)) != sizeof(header) || fchmod(fd, mode) < 0)
        return -errno;
    return 0;
}

TEST(only_programs_and_libraries_readable_by_the_recorders_user_are_opened_by_path) {
    static const struct {
        uint16_t type;
        mode_t mode;
        uid_t uid;
        gid_t gid;
        int result;
    } rows[] = {
        {ET_EXEC, 0755, 0, 0, 0},
        {ET_DYN, 0644, 0, 0, 0},
        {ET_CORE, 0644, 0, 0, -ENOEXEC},
        {ET_REL, 0644, 0, 0, -ENOEXEC},
        {ET_NONE, 0644, 0, 0, -ENOEXEC},
        {0xfe00, 0644, 0, 0, -ENOEXEC},
        {ET_CORE, 0600, 0, 0, -EACCES},
        {ET_DYN, 0600, 0, 0, -EACCES},
        {ET_DYN, 0640, 0, 0, -EACCES}, /* the keeper's group is not the recorder's */
        {ET_EXEC, 0750, 0, 0, -EACCES},
        {ET_DYN, 0640, 0, STRANGER, -EACCES}, /* and neither is another that the keeper is in */
        {ET_DYN, 0604, 0, RECORDER, -EACCES}, /* its own group may not */
        {ET_DYN, 0600, STRANGER, STRANGER, -EACCES},
        {ET_DYN, 0640, 0, RECORDER, 0},
        {ET_DYN, 0600, RECORDER, 0, 0},
    };
    const char *path = own_path("elf");
    gid_t group = STRANGER;
    uint32_t recorder;
    Served served;

    if (geteuid() != 0)
        TEST_SKIP("who is not root has no right to lend");
    CHECK_OK(setgroups(1, &group));
    CHECK_OK(served_begin_for(RECORDER, &served));
    CHECK_OK(setgroups(0, NULL));
    recorder = begin_recorder(RECORDER);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CHECK_OK(make_elf(path, rows[i].type, 0600));
        CHECK_OK(chown(path, rows[i].uid, rows[i].gid));
        CHECK_OK(chmod(path, rows[i].mode));
        CHECK_EQ(try_image(&served, recorder, path), rows[i].result);
        (void)unlink(path);
    }
    end_recorder(recorder);
    CHECK_EQ(served_end(&served), 0);
}

/* Everybody may read the file, but not reach it: because of its folder, or of the process from
 * whose root the path begins. */
TEST(a_path_through_a_folder_closed_to_the_recorders_user_is_refused) {
    const char *const folder = "/tmp/test-keeper.private";
    char path[64];
    uint32_t recorder, stranger, root;
    Served served;

    if (geteuid() != 0)
        TEST_SKIP("who is not root has no right to lend");
    snprintf(path, sizeof(path), "%s.%d", folder, (int)getpid());
    CHECK_OK(mkdir(path, 0700));
    CHECK_OK(chown(path, STRANGER, STRANGER));
    snprintf(path, sizeof(path), "%s.%d/elf", folder, (int)getpid());
    CHECK_OK(make_elf(path, ET_DYN, 0644));
    CHECK_OK(served_begin_for(RECORDER, &served));
    recorder = begin_recorder(RECORDER);
    stranger = begin_recorder(STRANGER);
    root = begin_recorder(0);
    CHECK_EQ(try_image(&served, recorder, path), -EACCES);
    CHECK_EQ(try_image(&served, stranger, path), -EACCES);
    CHECK_EQ(try_image(&served, root, path), -EACCES);
    CHECK_EQ(try_image(&served, stranger, "/bin/sh"), -EACCES);
    CHECK_EQ(try_image(&served, (uint32_t)getpid(), "/bin/sh"), -EACCES);
    CHECK_OK(try_image(&served, recorder, "/bin/sh"));
    end_recorder(root);
    end_recorder(stranger);
    end_recorder(recorder);
    CHECK_EQ(served_end(&served), 0);
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    (void)rmdir(path);
}

/* Checked before and after a request by path, during which the capabilities are disabled. */
TEST(a_mapped_file_is_opened_regardless_of_its_mode) {
    const char *path = own_path("library");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    _cleanup_close_ int file = -1;
    uint32_t recorder;
    Served served;
    void *memory;

    if (geteuid() != 0)
        TEST_SKIP("map_files needs root");
    CHECK_OK(make_elf(path, ET_DYN, 0600));
    CHECK_OK(chown(path, STRANGER, STRANGER));
    file = open(path, O_RDONLY | O_CLOEXEC);
    memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_OK(served_begin_for(RECORDER, &served));
    recorder = begin_recorder(RECORDER);
    for (size_t i = 0; i < 2; i++) {
        KeeperFileId id;
        int fd = -1;

        CHECK_OK(keeper_open_mapped(served.keeper, (uint32_t)getpid(), (uintptr_t)memory,
                                    (uintptr_t)memory + page, &id, &fd));
        closep(&fd);
        CHECK_EQ(try_image(&served, recorder, path), -EACCES);
    }
    (void)unlink(path);
    (void)munmap(memory, page);
    end_recorder(recorder);
    CHECK_EQ(served_end(&served), 0);
}

/* Makes a modules folder that only this process sees, with one module in it and one next to it. */
static int make_modules(const char *folder, char *module, char *stray, size_t size) {
    struct utsname system;

    if (uname(&system) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "mode=0755") < 0)
        return -errno;
    snprintf(stray, size, "/usr/lib/modules");
    (void)mkdir(stray, 0755);
    snprintf(stray, size, "/usr/lib/modules/%s", system.release);
    if (mkdir(stray, 0755) < 0)
        return -errno;
    snprintf(module, size, "/usr/lib/modules/%s/some.ko", system.release);
    snprintf(stray, size, "/usr/lib/modules/stray.ko");
    return MIN(make_elf(module, ET_REL, 0644), make_elf(stray, ET_REL, 0644));
}

/* In a process of its own, that has the folder of modules. */
static int try_modules(void) {
    const char *folder = access("/usr/lib/modules", F_OK) == 0 ? "/usr/lib/modules" : "/usr/lib";
    char module[256], stray[256];
    uint32_t recorder;
    Served served;
    int r = make_modules(folder, module, stray, sizeof(module));

    if (r < 0)
        return 77;
    if (served_begin_for(RECORDER, &served) < 0)
        return 1;
    recorder = begin_recorder(RECORDER);
    r = try_image(&served, recorder, module) == 0 && try_image(&served, recorder, stray) == -ENOEXEC
            ? 0
            : 2;
    end_recorder(recorder);
    return served_end(&served) == 0 ? r : 3;
}

TEST(only_modules_of_the_running_kernel_are_opened) {
    int status = 0;
    pid_t pid;

    if (geteuid() != 0)
        TEST_SKIP("a folder of modules takes root");
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(try_modules());
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        TEST_SKIP("no right to mount");
    CHECK_EQ(status, 0);
}

TEST(a_mapped_core_dump_is_not_opened) {
    const char *path = own_path("core");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    _cleanup_close_ int file = -1;
    KeeperFileId id;
    Served served;
    void *memory;
    int fd = -1;

    if (geteuid() != 0)
        TEST_SKIP("map_files needs root");
    CHECK_OK(make_elf(path, ET_CORE, 0600));
    file = open(path, O_RDONLY | O_CLOEXEC);
    memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE, file, 0);
    (void)unlink(path);
    CHECK(memory != MAP_FAILED);
    CHECK_OK(served_begin(&served));
    CHECK_EQ(keeper_open_mapped(served.keeper, (uint32_t)getpid(), (uintptr_t)memory,
                                (uintptr_t)memory + page, &id, &fd),
             -ENOEXEC);
    (void)munmap(memory, page);
    CHECK_EQ(served_end(&served), 0);
}

TEST(only_event_descriptions_of_tracefs_are_opened) {
    static const char *const wrong[] = {"../../../etc/shadow", "../trace", "/etc/shadow",
                                        "sched/sched_switch/enable"};
    char text[256] = "";
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK_EQ(keeper_open_tracefs(served.keeper, wrong[i], &fd), -EINVAL);
    r = keeper_open_tracefs(served.keeper, "sched/sched_switch/id", &fd);
    if (r == -ENOENT || r == -EACCES) {
        (void)served_end(&served);
        TEST_SKIP("%s", geteuid() == 0 ? "no tracefs is mounted" : "tracefs needs root");
    }
    CHECK_OK(r);
    CHECK(read(fd, text, sizeof(text) - 1) > 0 && atoi(text) > 0);
    (void)close(fd);
    CHECK_OK(keeper_open_tracefs(served.keeper, "header_page", &fd));
    (void)close(fd);
    CHECK_OK(keeper_open_tracefs(served.keeper, "../printk_formats", &fd));
    (void)close(fd);
    CHECK_OK(keeper_open_tracefs(served.keeper, "sched/", &fd));
    (void)close(fd);
    CHECK_OK(keeper_open_tracefs(served.keeper, "./", &fd));
    (void)close(fd);
    CHECK_EQ(keeper_open_tracefs(served.keeper, "enable/", &fd), -ENOTDIR);
    CHECK_EQ(served_end(&served), 0);
}

TEST_MAIN()
