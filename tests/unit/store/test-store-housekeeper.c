/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "make-scene.h"
#include "store/disk/dirfd.h"
#include "store/disk/disk.h"

typedef struct Desk {
    Loop *loop;
    Worker *housekeeper;
    sem_t answers; /* of a disk that takes its time */
    unsigned n_worked, n_done, stop_at;
} Desk;

static void desk_done(Desk *desk) {
    for (unsigned i = 0; i < 100; i++)
        sem_post(&desk->answers);
    worker_free(desk->housekeeper);
    loop_free(desk->loop);
    sem_destroy(&desk->answers);
}

static int desk_init(Desk *desk) {
    int r;

    *desk = (Desk){};
    sem_init(&desk->answers, 0, 0);
    r = loop_new(&desk->loop);
    return r == 0 ? housekeeper_new(desk->loop, "profd-house", &desk->housekeeper) : r;
}

static void work_slowly(void *userdata) {
    Desk *desk = userdata;

    sem_wait(&desk->answers);
    desk->n_worked++;
}

static void count_done(void *userdata) {
    Desk *desk = userdata;

    if (++desk->n_done == desk->stop_at)
        loop_stop(desk->loop);
}

static int add_slow(Desk *desk, bool privileged) {
    const WorkerJob job = {.run = work_slowly, .done = count_done, .userdata = desk};

    return housekeeper_add(desk->housekeeper, &job, privileged);
}

TEST(a_full_queue_reserves_space_for_administrators) {
    _cleanup_(desk_done) Desk desk;
    unsigned n_readers = 0, n_all;

    CHECK_OK(desk_init(&desk));
    while (n_readers < 1000 && add_slow(&desk, false) == 0)
        n_readers++;
    CHECK(n_readers >= 48 && n_readers <= 49);
    CHECK_EQ(add_slow(&desk, false), -EBUSY);
    for (n_all = n_readers; n_all < 1000 && add_slow(&desk, true) == 0;)
        n_all++;
    CHECK(n_all >= 64 && n_all <= 65);
    for (unsigned i = 0; i < n_all; i++)
        sem_post(&desk.answers);
    desk.stop_at = n_all;
    CHECK_OK(loop_run(desk.loop));
    CHECK_EQ(desk.n_worked, n_all);
    CHECK_OK(add_slow(&desk, false));
}

TEST(at_the_end_a_waiting_job_is_freed_without_running) {
    Desk desk;

    CHECK_OK(desk_init(&desk));
    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(add_slow(&desk, true));
    sem_post(&desk.answers);
    desk_done(&desk);
    CHECK_EQ(desk.n_done, 10);
    CHECK(desk.n_worked < 10);
}

static int watched = -1; /* a descriptor */
static unsigned n_closed;
static pthread_t closer;

/* In place of the one of the C library. */
int close(int fd) {
    if (fd == watched) {
        closer = pthread_self();
        n_closed++;
        watched = -1;
    }
    return (int)syscall(SYS_close, fd);
}

static int open_watched(void) {
    n_closed = 0;
    watched = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return watched;
}

TEST(a_file_is_closed_on_the_thread) {
    _cleanup_(desk_done) Desk desk;
    int fd = open_watched();

    CHECK_OK(desk_init(&desk));
    housekeeper_close(desk.housekeeper, &fd);
    CHECK_EQ(fd, -1);
    desk.stop_at = 1;
    CHECK_OK(add_slow(&desk, true));
    sem_post(&desk.answers);
    CHECK_OK(loop_run(desk.loop));
    CHECK_EQ(n_closed, 1U);
    CHECK(!pthread_equal(closer, pthread_self()));
}

TEST(a_file_is_closed_at_the_end_and_without_a_housekeeper) {
    Desk desk;
    int fd = open_watched();

    CHECK_OK(desk_init(&desk));
    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(add_slow(&desk, true));
    housekeeper_close(desk.housekeeper, &fd);
    desk_done(&desk);
    CHECK_EQ(n_closed, 1U);
    fd = open_watched();
    housekeeper_close(NULL, &fd);
    CHECK_EQ(n_closed, 1U);
    CHECK_EQ(fd, -1);
}

typedef struct Removal {
    bool is_done;
    int error;
} Removal;

static void on_removed(void *userdata, int error, uint64_t bytes) {
    Removal *removal = userdata;

    (void)bytes;
    *removal = (Removal){.is_done = true, .error = error};
}

TEST(a_snapshot_on_a_slow_disk_is_changed_once_and_listed_until_it_is_deleted) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    Removal removal = {};
    const SnapshotAnswer answer = {.on_done = on_removed, .userdata = &removal};
    Desk desk = {};
    const WorkerJob slow = {.run = work_slowly, .done = do_nothing, .userdata = &desk};
    SnapshotInfo info;

    sem_init(&desk.answers, 0, 0);
    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, (Way){LAYOUT_FILE, 3}, 1));
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(housekeeper_add(s.housekeeper, &slow, true));
    CHECK_OK(snapshot_remove(s.engine, "kept", &answer));
    CHECK_EQ(snapshot_remove(s.engine, "kept", &answer), -EBUSY);
    CHECK_EQ(snapshot_set_pinned(s.engine, "kept", true, &answer), -EBUSY);
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
    CHECK(!removal.is_done);
    sem_post(&desk.answers);
    CHECK_OK(wait_housekeeper(&s));
    CHECK(removal.is_done);
    CHECK_OK(removal.error);
    CHECK_EQ(snapshot_find(s.engine, "kept", &info), -ENOENT);
    CHECK_EQ(count_left(&s), 0);
    sem_destroy(&desk.answers);
}

TEST(a_removal_that_waits_is_done_after_a_copy_replaced_the_folder) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("gone");
    Removal removal = {};
    const SnapshotAnswer answer = {.on_done = on_removed, .userdata = &removal};
    Desk desk = {};
    const WorkerJob slow = {.run = work_slowly, .done = do_nothing, .userdata = &desk};
    SnapshotInfo info;

    sem_init(&desk.answers, 0, 0);
    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, (Way){LAYOUT_FILE, 3}, 1));
    CHECK_OK(make(&s, &wanted));
    wanted.name = "kept";
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(housekeeper_add(s.housekeeper, &slow, true));
    CHECK_OK(snapshot_remove(s.engine, "gone", &answer));
    CHECK_EQ(shell("cd %s && cp -a snapshots copy && mv snapshots old && mv copy snapshots",
                   s.place.path),
             0);
    wanted.name = "after";
    CHECK_OK(make(&s, &wanted));
    /* It is listed, but only after the folder was read can it be changed. */
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
    CHECK_EQ(snapshot_set_pinned(s.engine, "kept", true, &answer), -EBUSY);
    sem_post(&desk.answers);
    CHECK_OK(wait_housekeeper(&s));
    CHECK(removal.is_done);
    CHECK_OK(removal.error);
    CHECK_EQ(snapshot_find(s.engine, "gone", &info), -ENOENT);
    CHECK_OK(pin_snapshot(&s, "kept"));
    CHECK_OK(snapshot_find(s.engine, "after", &info));
    CHECK_EQ(count_left(&s), 4);
    sem_destroy(&desk.answers);
}

/* A process reads a file of the store on a thread that must not wait for a disk, or on another one;
 * its log and its wait status. */
static int read_on_a_thread(bool may_wait, Buffer *ret_log) {
    int out[2], status = -1;
    pid_t child;

    if (pipe(out) < 0)
        return -errno;
    child = fork();
    if (child == 0) {
        struct stat st;

        (void)dup2(out[1], STDERR_FILENO);
        (void)disk_forbid(!may_wait);
        (void)dirfd_open_file(AT_FDCWD, "/proc/self/stat", &st);
        _exit(0);
    }
    (void)close(out[1]);
    for (uint8_t *p; (p = buffer_reserve(ret_log, 4096));) {
        ssize_t n = read(out[0], p, 4096);

        if (n <= 0)
            break;
        buffer_commit(ret_log, (size_t)n);
    }
    (void)close(out[0]);
    return child > 0 && waitpid(child, &status, 0) == child ? status : -ECHILD;
}

TEST(a_thread_that_must_not_wait_reports_a_touch_of_the_disk_and_ends_a_debug_build) {
    _cleanup_(buffer_done) Buffer log = {};
    int status = read_on_a_thread(false, &log);

    CHECK(status >= 0);
    buffer_append(&log, "", 1);
    CHECK(strstr((const char *)log.data, "The main thread touches the disk (dirfd_open_file)"));
    if (PROFD_DEBUG_HOOKS) {
        CHECK(WIFSIGNALED(status));
        CHECK_EQ(WTERMSIG(status), SIGABRT);
    } else {
        CHECK_EQ(status, 0);
    }
}

TEST(a_thread_that_may_wait_touches_the_disk_in_silence) {
    _cleanup_(buffer_done) Buffer log = {};

    CHECK_EQ(read_on_a_thread(true, &log), 0);
    CHECK_EQ(log.size, 0);
}

TEST_MAIN()
