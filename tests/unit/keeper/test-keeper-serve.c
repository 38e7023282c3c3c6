/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "test.h"

#include <elf.h>
#include <endian.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "keeper/request/keeper-client.h"
#include "keeper/rights/capability.h"
#include "keeper/serve/serve.h"
#include "perfdata/event/format.h"
#include "util/bytes.h"
#include "util/fd-message.h"
#include "util/file.h"

/* The recorder's calls against a keeper that serves in a child of the test: two links, one after
 * the other, as two recorders would have. */

enum { RING_BYTES = 64 * 1024, LINKS = 2, RECORDER = 64990, STRANGER = 64991 };

typedef struct Served {
    pid_t pid;
    int sockets[LINKS];
    Keeper *keeper;
} Served;

/* uid 0: the recorder's user is found as usual. */
static void serve(const int *sockets, uid_t uid) {
    KeeperHost host;
    ServeContext context = {.host = &host, .listen = -1};
    int life[2];

    keeper_host_find(&host);
    if (uid != 0) {
        host.uid = host.gid = uid;
        host.has_user = true;
    }
    if (slots_new(&context.slots) < 0 || pipe2(life, O_CLOEXEC) < 0)
        _exit(1);
    context.life = life[0];
    for (size_t i = 0; i < LINKS; i++) {
        ServeLink link = {.context = &context, .fd = sockets[i], .may_take_over = true};

        while (serve_request(&link) == 0)
            ;
        (void)close(sockets[i]);
    }
    slots_free(context.slots);
    _exit(0);
}

static int served_begin_for(uid_t uid, Served *ret) {
    Served served = {};
    int ends[LINKS];

    for (size_t i = 0; i < LINKS; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return -errno;
        served.sockets[i] = pair[0];
        ends[i] = pair[1];
    }
    (void)fflush(stdout);
    served.pid = fork();
    if (served.pid == 0) {
        for (size_t i = 0; i < LINKS; i++)
            (void)close(served.sockets[i]);
        serve(ends, uid);
    }
    for (size_t i = 0; i < LINKS; i++)
        (void)close(ends[i]);
    *ret = served;
    return keeper_connect(TAKE_FD(ret->sockets[0]), &ret->keeper);
}

static int served_begin(Served *ret) {
    return served_begin_for(0, ret);
}

/* The status with which the keeper ended. */
static int served_end(Served *served) {
    int status = -1;

    keeper_disconnect(served->keeper);
    for (size_t i = 0; i < LINKS; i++)
        closep(&served->sockets[i]);
    (void)waitpid(served->pid, &status, 0);
    return status;
}

static int reconnect(Served *served) {
    served->keeper = keeper_disconnect(served->keeper);
    return keeper_connect(TAKE_FD(served->sockets[1]), &served->keeper);
}

static KeeperEvent clock_event(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = PERF_ATTR_SIZE_VER5,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                   .sample_period = 1000000,
                                   .use_clockid = 1,
                                   .clockid = CLOCK_MONOTONIC};
    KeeperEvent event = {.attr_size = sizeof(attr) < KEEPER_ATTR_MAX ? PERF_ATTR_SIZE_VER5 : 0,
                         .pid = -1,
                         .cpu = 0,
                         .leader_slot = KEEPER_NO_SLOT,
                         .output_slot = KEEPER_NO_SLOT,
                         .ring_bytes = RING_BYTES,
                         .tag = "a tag"};

    memcpy(event.attr, &attr, PERF_ATTR_SIZE_VER5);
    return event;
}

static void *map(int fd) {
    void *memory = mmap(NULL, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void unmap(void *memory) {
    if (memory)
        (void)munmap(memory, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE));
}

static uint64_t head_of(const struct perf_event_mmap_page *control) {
    return __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
}

/* Until the kernel wrote more than `above`; a clock ticks, so it will. */
static bool wait_for_head(const struct perf_event_mmap_page *control, uint64_t above) {
    for (int i = 0; i < 1000 && head_of(control) <= above; i++)
        (void)usleep(10000);
    return head_of(control) > above;
}

TEST(a_ring_outlives_its_recorder_and_is_read_from_the_same_position) {
    struct perf_event_mmap_page *control;
    KeeperEvent event = clock_event(), found;
    uint32_t slot, at = KEEPER_NO_SLOT;
    uint64_t taken;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    r = keeper_open_event(served.keeper, &event, &slot, &fd);
    if (r == -EACCES || r == -EPERM) {
        (void)served_end(&served);
        TEST_SKIP("the kernel refuses perf events");
    }
    CHECK_OK(r);
    control = map(fd);
    CHECK(control != NULL);
    CHECK(wait_for_head(control, 0));
    taken = head_of(control);
    __atomic_store_n(&control->data_tail, taken, __ATOMIC_RELEASE);
    unmap(control);
    (void)close(fd);

    CHECK_OK(reconnect(&served));
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 1);
    CHECK_EQ(at, slot);
    CHECK_EQ(found.cpu, 0);
    CHECK_EQ(found.pid, -1);
    CHECK_EQ(found.ring_bytes, RING_BYTES);
    CHECK_EQ(found.attr_size, event.attr_size);
    CHECK_EQ(memcmp(found.attr, event.attr, KEEPER_ATTR_MAX), 0);
    CHECK_STREQ((const char *)found.tag, "a tag");
    control = map(fd);
    CHECK(control != NULL);
    CHECK_EQ(control->data_tail, taken);
    CHECK(wait_for_head(control, taken));
    CHECK_EQ(((struct perf_event_header *)((uint8_t *)control + control->data_offset +
                                           taken % RING_BYTES))
                 ->type,
             PERF_RECORD_SAMPLE);
    unmap(control);
    (void)close(fd);
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 0);
    CHECK_OK(keeper_close_event(served.keeper, slot));
    CHECK_EQ(keeper_close_event(served.keeper, slot), -ENOENT);
    at = KEEPER_NO_SLOT;
    CHECK_EQ(keeper_next_event(served.keeper, &at, &found, &fd), 0);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_second_event_shares_the_ring_and_the_group_of_the_first) {
    KeeperEvent first = clock_event(), second = clock_event();
    uint32_t slots[2];
    KeeperStatus status;
    Served served;
    int fds[2], r;

    CHECK_OK(served_begin(&served));
    r = keeper_open_event(served.keeper, &first, &slots[0], &fds[0]);
    if (r == -EACCES || r == -EPERM) {
        (void)served_end(&served);
        TEST_SKIP("the kernel refuses perf events");
    }
    CHECK_OK(r);
    second.ring_bytes = 0;
    second.output_slot = second.leader_slot = slots[0];
    CHECK_OK(keeper_open_event(served.keeper, &second, &slots[1], &fds[1]));
    CHECK(slots[0] != slots[1]);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(status.n_events, 2);
    CHECK_EQ(status.restarts, 0);
    second.output_slot = 500;
    CHECK_EQ(keeper_open_event(served.keeper, &second, &slots[1], &fds[1]), -EBADF);
    (void)close(fds[0]);
    (void)close(fds[1]);
    CHECK_EQ(served_end(&served), 0);
}

TEST(events_of_kinds_that_profd_never_records_are_refused) {
    KeeperEvent event = clock_event();
    Served served;
    uint32_t slot;
    int fd;

    CHECK_OK(served_begin(&served));
    store_u64(event.attr + 40, load_u64(event.attr + 40, false) | PD_ATTR_BUILD_ID, false);
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EPERM);
    event = clock_event();
    store_u32(event.attr, 4000000, false); /* a type that no PMU has */
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    event = clock_event();
    event.cgroup = "../../../etc";
    CHECK(keeper_open_event(served.keeper, &event, &slot, &fd) < 0);
    event = clock_event();
    event.attr_size = 4096;
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EINVAL);
    CHECK_EQ(served_end(&served), 0);
}

TEST(a_cgroup_is_found_by_its_path_below_the_root) {
    KeeperEvent event = clock_event();
    char name[64], up[160];
    KeeperHost host;
    Served served;
    uint32_t slot;
    int fd = -1;

    if (geteuid() != 0)
        TEST_SKIP("needs root to make a cgroup");
    keeper_host_find(&host);
    snprintf(name, sizeof(name), "test-keeper-%d", (int)getpid());
    snprintf(up, sizeof(up), "%s/../%s", name, name);
    if (host.cgroup < 0 || mkdirat(host.cgroup, name, 0755) < 0) {
        keeper_host_done(&host);
        TEST_SKIP("no cgroup can be made, which takes root and a hierarchy for perf events");
    }
    event.cgroup = name;
    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_open_event(served.keeper, &event, &slot, &fd));
    CHECK_OK(keeper_close_event(served.keeper, slot));
    closep(&fd);
    event.cgroup = up; /* stays below */
    CHECK_OK(keeper_open_event(served.keeper, &event, &slot, &fd));
    CHECK_OK(keeper_close_event(served.keeper, slot));
    closep(&fd);
    event.cgroup = "../../../proc";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -EXDEV);
    event.cgroup = "nowhere";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    event.cgroup = "cgroup.procs";
    CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOTDIR);
    CHECK_EQ(served_end(&served), 0);
    (void)unlinkat(host.cgroup, name, AT_REMOVEDIR);
    keeper_host_done(&host);
}

static int probe_type(const char *pmu, uint32_t *ret) {
    char path[128], text[32];
    int r;

    snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
    r = file_read_text(path, text, sizeof(text));
    if (r >= 0)
        *ret = (uint32_t)strtoul(text, NULL, 10);
    return r;
}

TEST(a_probe_with_a_pointer_to_the_keepers_memory_is_refused) {
    static const char *const pmus[] = {"kprobe", "uprobe"};
    KeeperEvent event = clock_event();
    uint32_t type, slot;
    Served served;
    int fd;

    CHECK_OK(served_begin(&served));
    for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
        if (probe_type(pmus[i], &type) < 0)
            continue; /* a kernel may have only one of them */
        store_u32(event.attr, type, false);
        CHECK_EQ(keeper_open_event(served.keeper, &event, &slot, &fd), -ENOENT);
    }
    CHECK_EQ(served_end(&served), 0);
}

TEST(files_of_a_process_are_opened_by_pid) {
    char text[4096] = "";
    KeeperNamespace spaces[KEEPER_NAMESPACES];
    struct stat status;
    Served served;
    int fd, r;

    CHECK_OK(served_begin(&served));
    CHECK_OK(
        keeper_open_file(served.keeper, KEEPER_MAPS, (uint32_t)getpid(), (uint32_t)getpid(), &fd));
    CHECK(read(fd, text, sizeof(text) - 1) > 0);
    CHECK(strstr(text, "test-keeper-serve") != NULL);
    (void)close(fd);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_CGROUP, (uint32_t)getpid(), 0, &fd));
    (void)close(fd);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd));
    (void)close(fd);
    r = keeper_open_file(served.keeper, KEEPER_MODULES, 0, 0, &fd);
    CHECK(r == 0 || r == -ENOENT); /* a kernel may have no modules */
    if (r == 0)
        (void)close(fd);
    CHECK_EQ(keeper_open_file(served.keeper, KEEPER_MAPS, 1, 2, &fd), -ENOENT);
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
    r = keeper_open_file(served.keeper, KEEPER_PROC, 0, 0, &proc);
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

/* A process with the user of a recorder and without capabilities, from whose root paths are
 * resolved; it ends with the test. If the test does not run as root, it is such a process
 * itself. */
static uint32_t begin_recorder(uid_t uid) {
    int ready[2];
    char byte;
    pid_t pid;

    if (geteuid() != 0)
        return (uint32_t)getpid();
    if (pipe2(ready, O_CLOEXEC) < 0)
        return 0;
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if ((uid != 0 && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
                          setresuid(uid, uid, uid) < 0)) ||
            capabilities_limit(0) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) != 1)
        pid = 0;
    (void)close(ready[0]);
    return pid > 0 ? (uint32_t)pid : 0;
}

static void end_recorder(uint32_t pid) {
    if (pid == 0 || pid == (uint32_t)getpid())
        return;
    (void)kill((pid_t)pid, SIGKILL);
    (void)waitpid((pid_t)pid, NULL, 0);
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

/* A unique name. */
static const char *own_path(const char *name) {
    static char path[256];

    snprintf(path, sizeof(path), "/tmp/test-keeper.%d.%s", (int)getpid(), name);
    return path;
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

static int make_file(const char *path, mode_t mode) {
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

TEST(a_sealed_file_is_read_only_for_others) {
    char path[] = "/tmp/test-keeper.XXXXXX", file[64];
    struct stat status;
    Served served;
    int fd;

    CHECK(mkdtemp(path) != NULL);
    snprintf(file, sizeof(file), "%s/data", path);
    CHECK_OK(make_file(file, 0666));
    CHECK_OK(served_begin(&served));
    fd = open(file, O_RDONLY | O_CLOEXEC);
    CHECK_OK(keeper_seal(served.keeper, fd, false));
    CHECK_OK(keeper_seal(served.keeper, fd, false));
    (void)close(fd);
    CHECK_OK(stat(file, &status));
    CHECK_EQ(status.st_mode, S_IFREG | 0640);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_OK(keeper_seal(served.keeper, fd, true));
    (void)close(fd);
    CHECK_OK(stat(path, &status));
    CHECK_EQ(status.st_mode, S_IFDIR | 0750);
    (void)unlink(file);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

/* Like a seal that a slow disk left unfinished: only root owns sealed files, and a folder always
 * belongs to the recorder. */
TEST(a_folder_of_the_recorder_keeps_its_owner_and_can_be_sealed_again) {
    char path[] = "/tmp/test-keeper.XXXXXX";
    struct stat status;
    Served served;
    int fd;

    if (geteuid() != 0)
        TEST_SKIP("needs root to have another user");
    CHECK(mkdtemp(path) != NULL);
    CHECK_EQ(chown(path, RECORDER, RECORDER), 0);
    CHECK_OK(served_begin_for(RECORDER, &served));
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(keeper_seal(served.keeper, fd, false));
        CHECK_OK(fstat(fd, &status));
        CHECK_EQ(status.st_uid, RECORDER);
        CHECK(status.st_gid != RECORDER);
        CHECK_EQ(status.st_mode, S_IFDIR | 0750);
    }
    CHECK_EQ(fchown(fd, 0, 0), 0);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

TEST(only_regular_files_of_the_recorder_are_sealed) {
    char path[] = "/tmp/test-keeper.XXXXXX", file[64], other[64];
    Served served;
    int fd;

    CHECK(mkdtemp(path) != NULL);
    snprintf(file, sizeof(file), "%s/data", path);
    snprintf(other, sizeof(other), "%s/again", path);
    CHECK_OK(make_file(file, 0600));
    CHECK_OK(link(file, other));
    CHECK_OK(mkfifo(own_path("fifo"), 0600));
    CHECK_OK(served_begin(&served));
    fd = open(file, O_RDONLY | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    fd = open(own_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(keeper_seal(served.keeper, fd, false), -EPERM);
    (void)close(fd);
    CHECK_EQ(keeper_seal(served.keeper, -1, false), -EBADMSG);
    (void)unlink(own_path("fifo"));
    (void)unlink(other);
    (void)unlink(file);
    (void)rmdir(path);
    CHECK_EQ(served_end(&served), 0);
}

/* The answer to a message with any content. */
static int answer_to(int socket, const void *bytes, size_t n, const int *fds, size_t n_fds) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = n};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    KeeperReply reply;
    int fd = -1, r;

    if (n_fds > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);

        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
        return -errno;
    r = message_receive(socket, &reply, sizeof(reply), &fd);
    closep(&fd);
    return r < 0 ? -EPIPE : reply.result;
}

TEST(malformed_messages_are_answered_with_an_error) {
    static uint8_t bytes[2 * sizeof(KeeperRequest)];
    KeeperRequest request = {.protocol = KEEPER_PROTOCOL, .kind = KEEPER_STATUS};
    int pipes[2], fds[12];
    Served served;
    uint64_t seed = 42;

    CHECK_OK(served_begin(&served));
    served.keeper = keeper_disconnect(served.keeper);
    CHECK_OK(pipe2(pipes, O_CLOEXEC));
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = pipes[1];
    for (int i = 0; i < 2000; i++) {
        for (size_t k = 0; k < 64; k++) {
            seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
            bytes[k] = (uint8_t)(seed >> 56);
        }
        if (i % 2)
            store_u32(bytes, KEEPER_PROTOCOL, false);
        if (i % 3)
            store_u32(bytes + 4, bytes[5] % (KEEPER_KINDS + 1), false);
        (void)answer_to(served.sockets[1], bytes,
                        i % 5 ? sizeof(KeeperRequest) : (size_t)i % 64 + 1, NULL, 0);
    }
    CHECK_EQ(answer_to(served.sockets[1], bytes, sizeof(bytes), NULL, 0), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 1), -EBADMSG);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 2), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), fds, 12), -EMSGSIZE);
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), NULL, 0), 0);
    request.kind = KEEPER_OPEN_FILE; /* which is the opener's to answer */
    request.pid = 1;
    CHECK_EQ(answer_to(served.sockets[1], &request, sizeof(request), NULL, 0), -EOPNOTSUPP);
    /* The keeper must have closed all descriptors that were sent. */
    (void)close(pipes[1]);
    CHECK_EQ(read(pipes[0], bytes, 1), 0);
    (void)close(pipes[0]);
    CHECK_EQ(served_end(&served), 0);
}

static void *scan(void *argument) {
    Served *served = argument;

    for (int i = 0; i < 200; i++) {
        int fd;

        if (keeper_open_file(served->keeper, KEEPER_MAPS, (uint32_t)getpid(), 0, &fd) < 0)
            return (void *)1;
        (void)close(fd);
    }
    return NULL;
}

TEST(threads_get_their_own_answers) {
    pthread_t threads[3];
    KeeperStatus status;
    Served served;
    void *result;

    CHECK_OK(served_begin(&served));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, scan, &served), 0);
    for (int i = 0; i < 200; i++)
        CHECK_OK(keeper_status(served.keeper, &status));
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        CHECK(result == NULL);
    }
    CHECK_EQ(served_end(&served), 0);
}

/* The keeper's newest child. */
static pid_t newest_helper_of(const Served *served) {
    char path[64], text[256];
    const char *last;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)served->pid, (int)served->pid);
    if (file_read_text(path, text, sizeof(text)) <= 0)
        return -1;
    text[strcspn(text, "\n")] = '\0';
    while (text[0] && text[strlen(text) - 1] == ' ')
        text[strlen(text) - 1] = '\0';
    last = strrchr(text, ' ');
    return (pid_t)atoi(last ? last + 1 : text);
}

/* Not reaped, so it is a zombie. */
static bool is_dead(pid_t pid) {
    char path[64], text[256];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    return file_read_text(path, text, sizeof(text)) <= 0 || strstr(text, ") Z ");
}

/* The result of sealing an open file, by a thread that waits for it. */
typedef struct Sealing {
    Keeper *keeper;
    int fd, result;
} Sealing;

static void *seal(void *userdata) {
    Sealing *sealing = userdata;

    sealing->result = keeper_seal(sealing->keeper, sealing->fd, false);
    return NULL;
}

TEST(dead_or_hung_helpers_are_replaced_and_delay_nobody) {
    const char *path = own_path("sealed");
    _cleanup_close_ int file = -1;
    Sealing sealing;
    KeeperStatus status;
    pthread_t thread;
    pid_t first, second, sealer;
    Served served;
    int fd;

    CHECK_OK(make_file(path, 0640));
    file = open(path, O_RDONLY | O_CLOEXEC);
    (void)unlink(path);
    CHECK_OK(served_begin(&served));
    CHECK_OK(keeper_seal(served.keeper, file, false));
    sealer = newest_helper_of(&served);
    (void)kill(sealer, SIGSTOP);
    sealing = (Sealing){.keeper = served.keeper, .fd = file, .result = 1};
    CHECK_EQ(pthread_create(&thread, NULL, seal, &sealing), 0);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd));
    (void)close(fd);
    first = newest_helper_of(&served);
    CHECK(first > 0);
    (void)kill(first, SIGKILL);
    CHECK_EQ(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd), -EIO);
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd));
    (void)close(fd);
    second = newest_helper_of(&served);
    CHECK(second > 0 && second != first);
    (void)kill(second, SIGSTOP);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd), -ETIMEDOUT);
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_OK(keeper_open_file(served.keeper, KEEPER_KALLSYMS, 0, 0, &fd));
    (void)close(fd);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(sealing.result, -ETIMEDOUT);
    /* A recorder that is stopping scans no more, but still seals finished segments. */
    keeper_stop_waiting(served.keeper);
    CHECK_OK(keeper_seal(served.keeper, file, false));
    /* The helper must have been killed, or a missing file system would cost an opener each time. */
    for (unsigned i = 0; i < 1000 && !(is_dead(second) && is_dead(sealer)); i++)
        (void)usleep(1000);
    CHECK(is_dead(second));
    CHECK(is_dead(sealer));
    CHECK_EQ(served_end(&served), 0);
}

TEST(the_death_of_the_keeper_is_detected) {
    KeeperStatus status;
    struct pollfd life;
    Served served;

    CHECK_OK(served_begin(&served));
    life = (struct pollfd){.fd = keeper_fd(served.keeper), .events = POLLIN};
    CHECK_OK(keeper_status(served.keeper, &status));
    CHECK_EQ(poll(&life, 1, 0), 0);
    (void)kill(served.pid, SIGKILL);
    CHECK_EQ(poll(&life, 1, 10000), 1);
    CHECK_EQ(keeper_status(served.keeper, &status), -EPIPE);
    CHECK(served_end(&served) != 0);
}

TEST_MAIN()
