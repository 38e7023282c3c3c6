/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "scan/scanner.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "keeper-stand-in.h"
#include "test.h"
#include "util/clock.h"

/* The thread, the loop and what passes between them, over the /proc that is there. */

enum { CHILDREN = 300 };

typedef struct Told {
    Loop *loop;
    unsigned processes, kernels, cgroups, cgroups_done, build_ids, all_done;
    unsigned since_turn, most_in_turn;
    uint64_t begin_ns, last_end_ns;
    pid_t children[CHILDREN];
    unsigned found[CHILDREN];
    bool mistaken;
    size_t kernel_bytes;
    uint64_t image;
    size_t build_id_size;
    unsigned stop_after_all, stop_after_images, stop_after_processes;
    pid_t stranger; /* of another user */
    unsigned looks, found_stranger;
    int fails;
} Told;

static Told told;

static int on_process(void *userdata, const Baseline *b) {
    Told *t = userdata;

    t->processes++;
    t->since_turn++;
    t->last_end_ns = b->end_ns;
    t->found_stranger += (uint32_t)t->stranger == b->pid;
    t->mistaken |= b->begin_ns > b->end_ns || b->n_threads == 0 || b->threads[0].tid != b->pid;
    for (size_t i = 0; i < CHILDREN; i++) {
        if (t->children[i] == 0 || (uint32_t)t->children[i] != b->pid)
            continue;
        t->found[i]++;
        t->mistaken |= strcmp(b->threads[0].comm, "scan ) child") != 0 || b->n_maps == 0 ||
                       b->ppid != (uint32_t)getpid();
    }
    if (t->stop_after_processes && t->processes >= t->stop_after_processes)
        loop_stop(t->loop);
    return t->fails;
}

static int on_kernel(void *userdata, Bytes records) {
    Told *t = userdata;

    t->kernels++;
    t->kernel_bytes = records.size;
    return 0;
}

static int on_cgroup(void *userdata, uint64_t id, const char *path) {
    Told *t = userdata;

    t->cgroups++;
    t->since_turn++;
    t->mistaken |= id == 0 || path[0] != '/';
    return 0;
}

static int on_cgroups_done(void *userdata, uint64_t begin_ns) {
    Told *t = userdata;

    t->mistaken |= begin_ns == 0 || begin_ns > clock_monotonic_ns();
    t->cgroups_done++;
    return 0;
}

static int on_build_id(void *userdata, uint64_t image, Bytes build_id, uint64_t version _unused_) {
    Told *t = userdata;

    t->build_ids++;
    t->image = image;
    t->build_id_size = build_id.size;
    if (t->build_ids == t->stop_after_images)
        loop_stop(t->loop);
    return 0;
}

static int on_all_done(void *userdata, uint64_t begin_ns) {
    Told *t = userdata;

    t->mistaken |= begin_ns != 0 && begin_ns <= t->begin_ns;
    t->begin_ns = begin_ns;
    if (++t->all_done == t->stop_after_all)
        loop_stop(t->loop);
    return 0;
}

static int on_processes(void *userdata, const ScannerListing *look) {
    uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
    Told *t = userdata;

    t->looks++;
    for (size_t i = 0; i < look->n; i++) {
        t->mistaken |= look->starts_ns[i] > now_ns;
        t->found_stranger += (uint32_t)t->stranger == look->pids[i];
        for (size_t k = 0; k < CHILDREN; k++)
            t->found[k] += (uint32_t)t->children[k] == look->pids[i];
    }
    loop_stop(t->loop);
    return 0;
}

static const ScannerSinks sinks = {
    .on_process = on_process,
    .on_kernel = on_kernel,
    .on_cgroup = on_cgroup,
    .on_cgroups_done = on_cgroups_done,
    .on_build_id = on_build_id,
    .on_all_done = on_all_done,
    .on_processes = on_processes,
    .userdata = &told,
};

static Keeper keeper;
static Loop *loop;
static Scanner *scanner;

static int give_up(void *userdata) {
    (void)userdata;
    printf("# nothing more came\n");
    return -ETIMEDOUT;
}

static int begin(void) {
    int r;

    memset(&told, 0, sizeof(told));
    memset(&keeper, 0, sizeof(keeper));
    keeper.root = "";
    r = loop_new(&loop);
    if (r == 0)
        r = loop_add_timer(loop, 60000000000, give_up, NULL, NULL);
    if (r == 0)
        r = scanner_new(&keeper, loop, &sinks, &scanner);
    told.loop = loop;
    return r;
}

static void end(void) {
    scanner = scanner_free(scanner);
    loop = loop_free(loop);
}

static void spawn_children(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        pid_t pid = fork();

        if (pid < 0)
            abort();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            prctl(PR_SET_NAME, "scan ) child");
            raise(SIGSTOP);
            _exit(0);
        }
        told.children[i] = pid;
    }
    for (unsigned i = 0; i < n; i++)
        waitpid(told.children[i], NULL, WUNTRACED);
}

static void end_children(void) {
    for (unsigned i = 0; i < CHILDREN && told.children[i] != 0; i++) {
        kill(told.children[i], SIGKILL);
        waitpid(told.children[i], NULL, 0);
    }
}

TEST(a_pass_finds_every_process_once) {
    CHECK_OK(begin());
    spawn_children(CHILDREN);
    told.stop_after_all = 1;
    CHECK_OK(scanner_all(scanner));
    CHECK_OK(loop_run(loop));
    for (size_t i = 0; i < CHILDREN; i++)
        CHECK_EQ(told.found[i], 1U);
    CHECK(!told.mistaken);
    CHECK(told.begin_ns == 0 || told.begin_ns < told.last_end_ns);
    end_children();
    end();
}

TEST(a_pass_requested_during_another_follows_it) {
    CHECK_OK(begin());
    spawn_children(10);
    told.stop_after_all = 2;
    CHECK_OK(scanner_all(scanner));
    /* One after the other, so that the second is asked for while the first goes on or waits. */
    told.stop_after_processes = 1;
    CHECK_OK(loop_run(loop));
    CHECK_OK(scanner_all(scanner));
    CHECK_OK(scanner_all(scanner));
    told.stop_after_processes = 0;
    CHECK_OK(loop_run(loop));
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(told.found[i], 2U);
    CHECK(!told.mistaken);
    end_children();
    end();
}

static void wait_for_byte(Keeper *k, uint32_t pid) {
    char byte;

    (void)pid;
    (void)!read(*(const int *)k->userdata, &byte, 1);
}

TEST(a_thread_in_a_blocked_read_is_stuck_until_the_read_returns) {
    const uint64_t late_ns = 31 * NS_PER_SECOND;
    int pipe_fds[2];

    CHECK_OK(pipe(pipe_fds));
    CHECK_OK(begin());
    keeper.userdata = &pipe_fds[0];
    keeper.before_maps = wait_for_byte;
    told.stop_after_processes = 1;
    CHECK_OK(scanner_process(scanner, (uint32_t)getpid()));
    while (!scanner_health(scanner, clock_monotonic_ns() + late_ns).is_stuck)
        (void)usleep(1000);
    CHECK(!scanner_health(scanner, clock_monotonic_ns()).is_stuck);
    CHECK_EQ(write(pipe_fds[1], "x", 1), 1);
    CHECK_OK(loop_run(loop));
    while (scanner_health(scanner, clock_monotonic_ns() + late_ns).is_stuck)
        (void)usleep(1000);
    CHECK_EQ(told.processes, 1U);
    end();
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

static int count_turn(void *userdata) {
    Told *t = userdata;

    t->most_in_turn = MAX(t->most_in_turn, t->since_turn);
    t->since_turn = 0;
    return 0;
}

static int (*other_source)(void *);
static LoopSource *turn;

static int take_turn(void *userdata) {
    (void)other_source(userdata);
    return loop_trigger(turn);
}

TEST(a_slow_loop_makes_the_thread_wait_and_serves_other_sources) {
    unsigned opened;

    CHECK_OK(begin());
    spawn_children(CHILDREN);
    CHECK_OK(scanner_all(scanner));
    usleep(300000);
    opened = atomic_load(&keeper.n_opened);
    /* The processes that wait, the one at hand, and those that had ended. */
    CHECK(opened <= 200);
    other_source = count_turn;
    CHECK_OK(loop_add_deferred(loop, take_turn, &told, &turn));
    CHECK_OK(loop_trigger(turn));
    told.stop_after_all = 1;
    CHECK_OK(loop_run(loop));
    CHECK(told.most_in_turn > 1);
    CHECK(told.most_in_turn <= 2 * 32);
    for (size_t i = 0; i < CHILDREN; i++)
        CHECK_EQ(told.found[i], 1U);
    end_children();
    end();
}

TEST(a_single_process_is_read_again_unless_it_is_gone) {
    pid_t gone;

    CHECK_OK(begin());
    spawn_children(2);
    gone = told.children[1];
    kill(gone, SIGKILL);
    waitpid(gone, NULL, 0);
    CHECK_OK(scanner_process(scanner, (uint32_t)gone));
    CHECK_OK(scanner_process(scanner, (uint32_t)told.children[0]));
    CHECK_OK(scanner_process(scanner, (uint32_t)told.children[0]));
    told.stop_after_processes = 2;
    CHECK_OK(loop_run(loop));
    CHECK_EQ(told.found[0], 2U);
    CHECK_EQ(told.found[1], 0U);
    CHECK_EQ(told.processes, 2U);
    CHECK(!told.mistaken);
    told.children[1] = 0;
    end_children();
    end();
}

TEST(kernel_and_cgroups_come_before_the_processes) {
    CHECK_OK(begin());
    CHECK_OK(scanner_all(scanner));
    CHECK_OK(scanner_cgroups(scanner));
    CHECK_OK(scanner_kernel(scanner));
    told.stop_after_all = 1;
    CHECK_OK(loop_run(loop));
    CHECK_EQ(told.kernels, 1U);
    CHECK_EQ(told.cgroups_done, 1U);
    CHECK(!told.mistaken);
    end();
}

TEST(every_requested_image_gets_an_answer) {
    HistoryWanted wanted = {.image = 1000, .pid = (uint32_t)getpid(), .path = "/nowhere"};
    struct stat st;

    CHECK_OK(begin());
    CHECK_OK(stat("/proc/self/exe", &st));
    for (unsigned i = 0; i < 2000; i++) {
        wanted.image++;
        wanted.inode = i;
        wanted.major = 77;
        CHECK_OK(scanner_image(scanner, &wanted));
    }
    wanted.image++;
    wanted.major = major(st.st_dev);
    wanted.minor = minor(st.st_dev);
    wanted.inode = st.st_ino;
    wanted.start = (uintptr_t)begin;
    CHECK_OK(scanner_image(scanner, &wanted));
    told.stop_after_images = 2001;
    CHECK_OK(loop_run(loop));
    CHECK_EQ(told.image, 3001U);
    if (told.build_id_size == 0)
        TEST_SKIP("device numbers of this file system are not those of its mappings");
    CHECK_EQ(told.build_id_size, 20U);
    end();
}

/* What ends one before it is asked is no file's fault either. */
static void be_killed_twice(int socket) {
    if (atomic_load(&keeper.n_elf) < 2)
        (void)raise(SIGKILL);
    (void)elf_serve(socket);
}

static MappedImage own_program(void) {
    struct stat st = {};

    if (stat("/proc/self/exe", &st) < 0)
        abort();
    return (MappedImage){.pid = (uint32_t)getpid(),
                         .start = (uintptr_t)begin,
                         .major = major(st.st_dev),
                         .minor = minor(st.st_dev),
                         .inode = st.st_ino,
                         .path = "/nowhere"};
}

#define NEEDS_MAPPINGS(image)                                                                      \
    do {                                                                                           \
        if (geteuid() != 0)                                                                        \
            TEST_SKIP("no root, so mappings cannot be opened");                                    \
        if ((image)->major == 0)                                                                   \
            TEST_SKIP("device numbers of this file system are not those of its mappings");         \
    } while (0)

/* Until it is no longer being made. */
static TableState await_table(const MappedImage *image, const UnwindTable **ret) {
    TableState state = TABLE_PENDING;

    for (unsigned i = 0; state == TABLE_PENDING && i < 1000; i++) {
        if (scanner_await(scanner, NS_PER_SECOND / 100) < 0)
            return TABLE_UNKNOWN;
        state = table_cache_find(scanner_tables(scanner), image, ret);
    }
    return state;
}

TEST(the_table_of_a_file_comes_after_a_request) {
    MappedImage image = own_program(), other = own_program();
    const UnwindTable *table = NULL;

    NEEDS_MAPPINGS(&image);
    CHECK_OK(begin());
    CHECK_EQ(table_cache_find(scanner_tables(scanner), &image, &table), TABLE_UNKNOWN);
    CHECK_OK(table_cache_want(scanner_tables(scanner), &image, clock_monotonic_ns()));
    CHECK_EQ(await_table(&image, &table), TABLE_READY);
    CHECK(table->header.n_rows > 100);
    /* A file that no process has mapped. */
    other.inode++;
    CHECK_OK(table_cache_want(scanner_tables(scanner), &other, clock_monotonic_ns()));
    for (unsigned i = 0; table_cache_counts(scanner_tables(scanner)).asked > 0 && i < 1000; i++)
        CHECK_OK(scanner_await(scanner, NS_PER_SECOND / 100));
    CHECK_EQ(table_cache_find(scanner_tables(scanner), &other, &table), TABLE_PENDING);
    CHECK_EQ(table_cache_counts(scanner_tables(scanner)).asked, 0U);
    end();
}

TEST(a_table_comes_although_its_helper_is_killed_twice) {
    MappedImage image = own_program();
    const UnwindTable *table = NULL;

    NEEDS_MAPPINGS(&image);
    CHECK_OK(begin());
    keeper.elf = be_killed_twice;
    CHECK_OK(table_cache_want(scanner_tables(scanner), &image, clock_monotonic_ns()));
    CHECK_EQ(await_table(&image, &table), TABLE_READY);
    CHECK_EQ(atomic_load(&keeper.n_elf), 3U);
    CHECK(!scanner_health(scanner, clock_monotonic_ns()).lacks_elf);
    end();
}

/* Only a program that was executed shows whose it is. */
static pid_t spawn_stranger(void) {
    pid_t pid = fork();

    if (pid == 0) {
        if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execlp("sleep", "sleep", "1000", NULL);
        _exit(1);
    }
    for (unsigned i = 0; i < 1000; i++) {
        char path[32];
        struct stat st;

        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        if (stat(path, &st) == 0 && st.st_uid == 65534)
            break;
        usleep(10000);
    }
    return pid;
}

TEST(with_the_limit_to_one_user_no_other_processes_are_listed) {
    if (geteuid() != 0)
        TEST_SKIP("no root, so nobody else to be");
    CHECK_OK(begin());
    scanner_limit_to_user(scanner, true);
    told.stranger = spawn_stranger();
    spawn_children(10);
    CHECK_OK(scanner_list(scanner));
    CHECK_OK(loop_run(loop));
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(told.found[i], 1U);
    CHECK_EQ(told.looks, 1U);
    told.stop_after_all = 1;
    CHECK_OK(scanner_all(scanner));
    CHECK_OK(loop_run(loop));
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(told.found[i], 2U);
    CHECK_EQ(told.found_stranger, 0U);
    CHECK(!told.mistaken);
    CHECK(told.begin_ns > 0);
    kill(told.stranger, SIGKILL);
    waitpid(told.stranger, NULL, 0);
    end_children();
    end();
}

TEST(a_sink_that_fails_stops_the_loop) {
    CHECK_OK(begin());
    told.fails = -EUCLEAN;
    CHECK_OK(scanner_all(scanner));
    CHECK_EQ(loop_run(loop), -EUCLEAN);
    CHECK_EQ(told.processes, 1U);
    end();
}

TEST(the_scanner_can_be_freed_at_any_moment) {
    HistoryWanted wanted = {.image = 1, .pid = 1, .inode = 5, .major = 7, .path = "/nowhere"};

    for (unsigned i = 0; i < 50; i++) {
        CHECK_OK(begin());
        CHECK_OK(scanner_all(scanner));
        CHECK_OK(scanner_cgroups(scanner));
        for (unsigned k = 0; k < i; k++) {
            CHECK_OK(scanner_image(scanner, &wanted));
            CHECK_OK(scanner_process(scanner, 1));
        }
        usleep(i * 200);
        end();
    }
}

TEST(the_scanner_goes_on_without_a_keeper) {
    CHECK_OK(begin());
    keeper.refuses_all = EPIPE;
    told.stop_after_all = 1;
    CHECK_OK(scanner_all(scanner));
    CHECK_OK(loop_run(loop));
    /* Not all could be read, so nothing follows from who was not found. */
    CHECK_EQ(told.begin_ns, 0U);
    end();
}

/* 0: all children were found or none, as wanted; in a process of its own, which loses its rights
 * and the sight of others. */
static int look_under_hidepid(bool has_other_proc) {
    int other = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC), r;
    unsigned found = 0;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", 0, "hidepid=2") < 0 || setgroups(0, NULL) < 0 ||
        setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
        return 77;
    keeper.root = "";
    keeper.proc = has_other_proc ? other : 0;
    r = loop_new(&loop);
    if (r == 0)
        r = scanner_new(&keeper, loop, &sinks, &scanner);
    told.loop = loop;
    told.stop_after_all = 1;
    if (r == 0)
        r = scanner_all(scanner);
    if (r == 0)
        r = loop_run(loop);
    for (size_t i = 0; i < CHILDREN; i++)
        found += told.found[i];
    end();
    if (r < 0 || (told.begin_ns != 0) != has_other_proc)
        return 1;
    return found == (has_other_proc ? 10 : 0) ? 0 : 2;
}

TEST(the_keeper_opens_a_proc_that_hides_no_process) {
    int status[2];

    memset(&told, 0, sizeof(told));
    memset(&keeper, 0, sizeof(keeper));
    spawn_children(10);
    for (unsigned i = 0; i < 2; i++) {
        pid_t pid;

        (void)fflush(stdout);
        pid = fork();
        if (pid == 0)
            _exit(look_under_hidepid(i > 0));
        waitpid(pid, &status[i], 0);
    }
    end_children();
    if (WEXITSTATUS(status[0]) == 77)
        TEST_SKIP("no root, so nothing to mount");
    CHECK_EQ(status[0], 0);
    CHECK_EQ(status[1], 0);
}

TEST_MAIN()
