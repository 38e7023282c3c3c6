/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "store/window/window.h"
#include "unit/make-store.h"
#include "util/clock.h"

/*
 * Disks that fill up, become read-only or vanish while a session records: nothing waits for them,
 * no sample that the queue took is lost, and recording continues by itself when they are back.
 */

enum { DISK_BYTES = 2 << 20, BATCH = 2000 };

typedef struct Disk {
    Place place;
    bool mounted;
    StoreSession *session;
    uint64_t sweep, taken; /* samples that the queue took */
} Disk;

static void disk_done(Disk *disk) {
    store_session_close(disk->session);
    disk->place.store = store_free(disk->place.store);
    if (disk->mounted)
        (void)umount2(disk->place.path, MNT_DETACH);
    place_done(&disk->place);
}

static int disk_init(Disk *disk, const char *options) {
    int r;

    *disk = (Disk){};
    r = place_init(&disk->place);
    if (r < 0)
        return r;
    if (mkdir(disk->place.path, 0700) < 0 ||
        mount("none", disk->place.path, "tmpfs", MS_NOSUID, options) < 0)
        return -errno;
    disk->mounted = true;
    /* Only the disk limits the store. */
    disk->place.config->max_use_bytes = 1024 * MIB;
    disk->place.config->min_use_bytes = 1024 * MIB;
    return place_open(&disk->place);
}

#define DISK(disk, options)                                                                        \
    _cleanup_(disk_done) Disk disk;                                                                \
    if (geteuid() != 0)                                                                            \
        TEST_SKIP("root is needed to mount");                                                      \
    if (disk_init(&disk, options) < 0)                                                             \
    TEST_SKIP("no tmpfs can be mounted here")

static int start(Disk *disk, Layout layout, int level) {
    SessionConfig config = store_session("default", layout, level);

    return store_session_new(disk->place.store, &config, false, &disk->session);
}

static int sweep(Disk *disk) {
    int r = write_samples(disk->session, 0, clock_anchor_now().monotonic_ns, BATCH);

    if (r == 0)
        disk->taken += BATCH;
    return r == 0 ? end_sweep(disk->session, ++disk->sweep) : r;
}

/* Waits until the writer reports the error; false: not within twenty seconds. */
static bool wait_error(Disk *disk, int error) {
    for (unsigned i = 0; i < 20000; i++) {
        if (store_session_counts(disk->session).error == error)
            return true;
        usleep(1000);
    }
    return false;
}

static bool wait_all(Disk *disk) {
    return wait_written(disk->session, disk->sweep) || wait_written(disk->session, disk->sweep);
}

static void fill_and_resume(Layout layout) {
    DISK(disk, "size=2m");
    CHECK_OK(start(&disk, layout, 0));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_EQ(shell("head -c 1500000 /dev/zero > %s/filler", disk.place.path), 0);
    for (unsigned i = 0; i < 20; i++)
        CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -ENOSPC));
    CHECK(store_session_written(disk.session) < disk.sweep);
    /* A rotation while it is full waits like everything else. */
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_OK(sweep(&disk));
    CHECK_EQ(
        shell("rm %s/filler && mount -o remount,size=64m %s", disk.place.path, disk.place.path), 0);
    CHECK(wait_all(&disk));
    CHECK_EQ(store_session_counts(disk.session).error, 0);
    CHECK_EQ(store_session_counts(disk.session).dropped_samples, 0);
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "default", ".open", NULL), 0);
    CHECK_EQ(count_names(&disk.place, "default", ".perf.data", NULL), 2);
    CHECK_EQ(count_all(&disk.place, "default"), disk.taken);
}

TEST(a_full_disk_is_waited_for_with_files) {
    fill_and_resume(LAYOUT_FILE);
}

TEST(a_full_disk_is_waited_for_with_folders) {
    fill_and_resume(LAYOUT_DIRECTORY);
}

TEST(memory_is_bounded_while_the_disk_is_full) {
    uint64_t refused = 0;

    DISK(disk, "size=2m");
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    for (unsigned i = 0; i < 600; i++)
        refused += sweep(&disk) == -ENOBUFS;
    CHECK(refused > 0);
    CHECK(store_session_counts(disk.session).queue_high_bytes <= 33 * MIB);
    CHECK_EQ(store_session_counts(disk.session).dropped_samples, refused * BATCH);
    CHECK_EQ(shell("mount -o remount,size=200m %s", disk.place.path), 0);
    CHECK_OK(end_sweep(disk.session, ++disk.sweep));
    CHECK(wait_all(&disk));
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_all(&disk.place, "default"), disk.taken);
}

TEST(on_a_full_disk_the_oldest_segments_are_deleted_first) {
    DISK(disk, "size=4m");
    disk.place.config->min_use_bytes = 0;
    disk.place.config->keep_free_bytes = MIB;
    store_configure(disk.place.store, disk.place.config);
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    for (unsigned i = 0; i < 40; i++) {
        CHECK_OK(begin_segment(&disk.place, disk.session));
        for (unsigned k = 0; k < 3; k++)
            CHECK_OK(sweep(&disk));
        CHECK(wait_all(&disk));
    }
    CHECK_EQ(store_session_counts(disk.session).error, 0);
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) >= 3);
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) < 15);
    CHECK(store_use(disk.place.store).free_bytes >= MIB / 2);
}

/* Sixteen, and two for each CPU, are to stay free. */
#define INODE_CPUS 2

static int rotate_and_sweep(Disk *disk, unsigned n) {
    int r = 0;

    for (unsigned i = 0; r == 0 && i < n; i++) {
        r = begin_segment(&disk->place, disk->session);
        if (r == 0)
            r = sweep(disk);
        if (r == 0 && !wait_all(disk))
            r = -ETIMEDOUT;
    }
    return r;
}

static void run_out_of_inodes(Layout layout) {
    struct statvfs st;

    DISK(disk, "size=64m,nr_inodes=64");
    disk.place.store->n_cpus = INODE_CPUS;
    CHECK_OK(start(&disk, layout, 3));
    CHECK_OK(rotate_and_sweep(&disk, 60));
    CHECK_EQ(store_session_counts(disk.session).error, 0);
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) >= 4);
    CHECK_EQ(statvfs(disk.place.path, &st), 0);
    CHECK(st.f_favail >= 8);
    CHECK(count_all(&disk.place, "default") > 0);
}

TEST(without_free_inodes_the_oldest_files_are_deleted_first) {
    run_out_of_inodes(LAYOUT_FILE);
}

TEST(without_free_inodes_the_oldest_folders_are_deleted_first) {
    run_out_of_inodes(LAYOUT_DIRECTORY);
}

/* Uses up all remaining inodes. */
static void take_inodes(const Disk *disk) {
    char path[200];

    for (unsigned i = 0; i < 400; i++) {
        int fd;

        snprintf(path, sizeof(path), "%s/filler-%u", disk->place.path, i);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            return;
        (void)close(fd);
    }
}

/* Whether everything is written, or the writer reports that it cannot write. */
static bool is_settled(const Disk *disk) {
    return store_session_written(disk->session) >= disk->sweep ||
           store_session_counts(disk->session).error < 0;
}

static bool wait_settled(const Disk *disk) {
    for (unsigned i = 0; i < 20000 && !is_settled(disk); i++)
        usleep(1000);
    return is_settled(disk);
}

TEST(a_session_keeps_its_newest_segments_when_others_use_all_inodes) {
    DISK(disk, "size=64m,nr_inodes=200");
    disk.place.store->n_cpus = INODE_CPUS;
    CHECK_OK(start(&disk, LAYOUT_FILE, 3));
    CHECK_OK(rotate_and_sweep(&disk, 20));
    CHECK_EQ(count_names(&disk.place, "default", ".perf.data", NULL), 19);
    take_inodes(&disk);
    /* The oldest segments are deleted for the next one. */
    CHECK_OK(rotate_and_sweep(&disk, 1));
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) >= 4);
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) < 19);
    for (unsigned i = 0; i < 4; i++) {
        take_inodes(&disk);
        CHECK_OK(begin_segment(&disk.place, disk.session));
        CHECK_OK(sweep(&disk));
        CHECK(wait_settled(&disk));
    }
    CHECK(wait_error(&disk, -ENOSPC));
    CHECK(count_names(&disk.place, "default", ".perf.data", NULL) >= 4);
    CHECK_EQ(shell("rm %s/filler-*", disk.place.path), 0);
    CHECK(wait_all(&disk));
    CHECK_EQ(store_session_counts(disk.session).error, 0);
}

TEST(a_disk_that_stays_full_does_not_delay_the_end) {
    DISK(disk, "size=1m");
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    for (unsigned i = 0; i < 20; i++)
        CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -ENOSPC));
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "default", ".open", NULL), 1);
    CHECK_EQ(shell("mount -o remount,size=64m %s", disk.place.path), 0);
    CHECK_OK(place_again(&disk.place));
    CHECK_OK(recover_all(&disk.place, "default"));
    CHECK(count_all(&disk.place, "default") > 0);
}

TEST(a_restarted_session_finishes_its_unfinished_segment) {
    DISK(disk, "size=1m");
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    for (unsigned i = 0; i < 20; i++)
        CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -ENOSPC));
    disk.session = store_session_close(disk.session);
    CHECK_EQ(shell("mount -o remount,size=64m %s", disk.place.path), 0);
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK(store_session_previous(disk.session, 0));
    CHECK(count_read(store_session_previous(disk.session, 0)) > 0);
    CHECK_EQ(count_names(&disk.place, "default", ".open", NULL), 0);
}

/* Takes what is left of the disk, so that not even a manifest can be written. */
static void fill(const Disk *disk) {
    (void)shell("head -c 4000000 /dev/zero > %s/filler 2> /dev/null", disk->place.path);
}

/* The samples that a reader finds in a segment, whatever follows them. */
static uint64_t count_whole(const char *path) {
    _cleanup_(pd_reader_freep) PdReader *reader = NULL;
    PdRecord record;
    uint64_t n = 0;

    if (pd_reader_open(path, NULL, &reader, NULL) < 0)
        return 0;
    while (pd_reader_next(reader, &record) > 0)
        n += record.type == PD_RECORD_SAMPLE;
    return n;
}

/* Waits while the session has something to do now and then; false: not within twenty seconds. */
static bool wait_recovered(const Disk *disk, const char *name) {
    for (unsigned i = 0; i < 2000; i++) {
        if (count_names(&disk->place, name, "~.perf.data", NULL) > 0)
            return true;
        (void)store_session_note(disk->session, &(SegmentFacts){.sweeps = 1});
        usleep(10000);
    }
    return false;
}

/* *was_full: false if what was cut off from the end of the file made room to recover it at once. */
static void recover_on_full_disk(Layout layout, int level, bool *was_full) {
    SessionConfig config = store_session("default", layout, level);
    const char *previous;
    uint64_t whole;
    int pid, status;

    DISK(disk, "size=1m");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* It is killed while the disk is full. */
        if (store_session_new(disk.place.store, &config, false, &disk.session) < 0 ||
            begin_segment(&disk.place, disk.session) < 0)
            _exit(1);
        for (unsigned i = 0; i < (level > 0 ? 200 : 40); i++)
            (void)sweep(&disk);
        if (!wait_error(&disk, -ENOSPC))
            _exit(1);
        (void)kill(getpid(), SIGKILL);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status));
    fill(&disk);
    CHECK_OK(place_again(&disk.place));
    CHECK_OK(store_session_new(disk.place.store, &config, false, &disk.session));
    previous = store_session_previous(disk.session, 0);
    *was_full = count_names(&disk.place, "default", ".open", NULL) > 0;
    if (!*was_full)
        return;
    CHECK(previous && strstr(previous, ".open"));
    whole = count_whole(previous);
    CHECK(whole > 0);
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -ENOSPC));
    CHECK_EQ(
        shell("rm %s/filler && mount -o remount,size=64m %s", disk.place.path, disk.place.path), 0);
    CHECK(wait_all(&disk));
    CHECK(wait_recovered(&disk, "default"));
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "default", ".open", NULL), 0);
    CHECK_EQ(count_names(&disk.place, "default", ".perf.data", NULL), 2);
    CHECK_EQ(count_all(&disk.place, "default"), whole + disk.taken);
}

static void recover_when_there_is_space(Layout layout, int level) {
    bool was_full = false;

    for (unsigned i = 0; i < 20 && !was_full && !test_failed; i++)
        recover_on_full_disk(layout, level, &was_full);
    CHECK(was_full);
}

TEST(a_file_that_a_full_disk_does_not_let_recover_is_recovered_later) {
    recover_when_there_is_space(LAYOUT_FILE, 0);
}

TEST(a_compressed_file_that_a_full_disk_does_not_let_recover_is_recovered_later) {
    recover_when_there_is_space(LAYOUT_FILE, 3);
}

TEST(a_folder_that_a_full_disk_does_not_let_recover_is_recovered_later) {
    recover_when_there_is_space(LAYOUT_DIRECTORY, 0);
}

/* The reason of the last gap of the session; PD_GAP_REASONS: there is none. */
static PdGapReason last_gap(const Disk *disk, const char *session, uint64_t since_ns,
                            uint64_t until_ns) {
    WindowQuery query = {.since_ns = since_ns, .until_ns = until_ns, .by_monotonic = true};
    _cleanup_(window_freep) Window *window = NULL;
    SnapshotFailure why;

    snprintf(query.session, sizeof(query.session), "%s", session);
    if (window_new(disk->place.store, &query, &window, &why) < 0 || window->coverage.n_gaps == 0)
        return PD_GAP_REASONS;
    return window->coverage.gaps[window->coverage.n_gaps - 1].reason;
}

/* A file has its name a moment before the list has it. */
static bool wait_gap(const Disk *disk, const char *session, uint64_t since_ns, uint64_t until_ns,
                     PdGapReason reason) {
    for (unsigned i = 0; i < 10000; i++) {
        if (last_gap(disk, session, since_ns, until_ns) == reason)
            return true;
        usleep(1000);
    }
    return false;
}

/* Waits until a recovery has failed; false: not within ten seconds. */
static bool wait_retry(const Disk *disk, const char *session) {
    Store *store = disk->place.store;
    bool found = false;

    for (unsigned i = 0; i < 10000 && !found; i++) {
        usleep(1000);
        pthread_mutex_lock(&store->mutex);
        found = store_folder(store, session)->retry_ns > 0;
        pthread_mutex_unlock(&store->mutex);
    }
    return found;
}

TEST(a_segment_that_was_given_up_is_recovered_by_another_session) {
    SessionConfig web = store_session("web", LAYOUT_FILE, 0);
    uint64_t began_ns = clock_anchor_now().monotonic_ns;

    DISK(disk, "size=1m");
    CHECK_OK(store_session_new(disk.place.store, &web, false, &disk.session));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_OK(sweep(&disk));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    for (unsigned i = 0; i < 20; i++)
        CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -ENOSPC));
    store_session_leave(disk.session, PD_GAP_STOPPED, clock_anchor_now().monotonic_ns);
    store_session_wait(disk.session);
    CHECK(store_session_counts(disk.session).unwritten_samples > 0);
    CHECK(store_session_counts(disk.session).is_left_open);
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "web", ".open", NULL), 1);
    /* It cannot be read, and it takes space. */
    CHECK_EQ(last_gap(&disk, "web", began_ns, clock_anchor_now().monotonic_ns), PD_GAP_DAMAGED);
    CHECK(store_use(disk.place.store).used_bytes > MIB / 2);
    fill(&disk);
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK(wait_retry(&disk, "web"));
    CHECK_EQ(count_names(&disk.place, "web", ".open", NULL), 1);
    CHECK_EQ(last_gap(&disk, "web", began_ns, clock_anchor_now().monotonic_ns), PD_GAP_DAMAGED);
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_EQ(
        shell("rm %s/filler && mount -o remount,size=64m %s", disk.place.path, disk.place.path), 0);
    CHECK(wait_recovered(&disk, "web"));
    CHECK_EQ(count_names(&disk.place, "web", ".open", NULL), 0);
    CHECK(count_all(&disk.place, "web") > BATCH);
    CHECK(wait_gap(&disk, "web", began_ns, clock_anchor_now().monotonic_ns, PD_GAP_STOPPED));
}

TEST(a_segment_that_only_lacks_its_end_covers_the_time_until_the_stop) {
    SessionConfig web = store_session("web", LAYOUT_FILE, 0);
    uint64_t began_ns, left_ns;

    DISK(disk, "size=1m");
    CHECK_OK(store_session_new(disk.place.store, &web, false, &disk.session));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    began_ns = clock_anchor_now().monotonic_ns;
    CHECK_OK(sweep(&disk));
    CHECK(wait_all(&disk));
    fill(&disk);
    usleep(50000);
    left_ns = clock_anchor_now().monotonic_ns;
    store_session_leave(disk.session, PD_GAP_STOPPED, left_ns);
    store_session_wait(disk.session);
    CHECK_EQ(store_session_counts(disk.session).unwritten_samples, 0);
    CHECK(store_session_counts(disk.session).is_left_open);
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "web", ".open", NULL), 1);
    CHECK_EQ(
        shell("rm %s/filler && mount -o remount,size=64m %s", disk.place.path, disk.place.path), 0);
    CHECK_OK(start(&disk, LAYOUT_FILE, 0));
    CHECK(wait_recovered(&disk, "web"));
    CHECK_EQ(count_all(&disk.place, "web"), BATCH);
    CHECK(wait_gap(&disk, "web", began_ns, left_ns + NS_PER_SECOND, PD_GAP_STOPPED));
    CHECK_EQ(last_gap(&disk, "web", began_ns, left_ns), PD_GAP_REASONS);
}

TEST(a_disk_that_is_read_only_for_a_while_loses_nothing) {
    DISK(disk, "size=64m");
    CHECK_OK(start(&disk, LAYOUT_FILE, 3));
    CHECK_EQ(shell("mount -o remount,ro %s", disk.place.path), 0);
    CHECK_OK(begin_segment(&disk.place, disk.session));
    for (unsigned i = 0; i < 5; i++)
        CHECK_OK(sweep(&disk));
    CHECK(wait_error(&disk, -EROFS));
    CHECK_EQ(shell("mount -o remount,rw %s", disk.place.path), 0);
    CHECK(wait_all(&disk));
    CHECK_EQ(store_session_counts(disk.session).error, 0);
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_all(&disk.place, "default"), disk.taken);
}

/* `command` deletes the open segment in the store. */
static void delete_and_go_on(Layout layout, const char *command) {
    uint64_t before;

    DISK(disk, "size=64m");
    CHECK_OK(start(&disk, layout, 3));
    for (unsigned i = 0; i < 2; i++) {
        CHECK_OK(begin_segment(&disk.place, disk.session));
        CHECK_OK(sweep(&disk));
    }
    CHECK(wait_all(&disk));
    CHECK_EQ(shell("cd %s && %s", disk.place.path, command), 0);
    /* This segment is still written to the deleted file, which the writer reports. */
    CHECK_OK(sweep(&disk));
    CHECK(wait_all(&disk));
    for (unsigned i = 0; i < 5000 && !store_session_counts(disk.session).rotate_wanted; i++)
        usleep(1000);
    CHECK(store_session_counts(disk.session).rotate_wanted);
    before = disk.taken;
    CHECK_OK(sweep(&disk));
    CHECK_OK(begin_segment(&disk.place, disk.session));
    CHECK_OK(sweep(&disk));
    CHECK(wait_all(&disk));
    CHECK(!store_session_counts(disk.session).rotate_wanted);
    disk.session = store_session_close(disk.session);
    CHECK_EQ(count_names(&disk.place, "default", ".open", NULL), 0);
    CHECK(count_all(&disk.place, "default") >= (int64_t)(disk.taken - before));
    CHECK_EQ(count_names(&disk.place, "default", ".perf.data", NULL),
             count_names(&disk.place, "default", "", NULL) / (layout == LAYOUT_FILE ? 2 : 1));
    CHECK_EQ(shell("test -e %s/.lock && test -e %s/snapshots", disk.place.path, disk.place.path),
             0);
}

TEST(a_deleted_file_is_made_again) {
    delete_and_go_on(LAYOUT_FILE, "rm sessions/default/*.open");
}

TEST(a_deleted_segment_folder_is_made_again) {
    delete_and_go_on(LAYOUT_DIRECTORY, "rm -r sessions/default/*.open");
}

TEST(a_deleted_session_folder_is_made_again) {
    delete_and_go_on(LAYOUT_FILE, "rm -r sessions/default");
}

TEST(a_deleted_store_is_made_again) {
    delete_and_go_on(LAYOUT_DIRECTORY, "rm -r sessions snapshots .lock; touch .lock");
}

TEST(a_store_with_a_deleted_parent_folder_is_made_again) {
    _cleanup_(place_done) Place place;
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    StoreSession *session = NULL;
    uint64_t sweeps = 0;

    CHECK_OK(place_init(&place));
    CHECK_OK(place_open(&place));
    CHECK_OK(store_session_new(place.store, &config, false, &session));
    CHECK_OK(begin_segment(&place, session));
    CHECK_OK(write_samples(session, 0, 1000, 10));
    CHECK_OK(end_sweep(session, ++sweeps));
    CHECK(wait_written(session, sweeps));
    CHECK_EQ(shell("rm -r %s", place.path), 0);
    CHECK_OK(end_sweep(session, ++sweeps));
    CHECK(wait_written(session, sweeps));
    CHECK_OK(begin_segment(&place, session));
    CHECK_OK(write_samples(session, 0, 1000, 10));
    CHECK_OK(end_sweep(session, ++sweeps));
    CHECK(wait_written(session, sweeps));
    session = store_session_close(session);
    CHECK(count_all(&place, "default") >= 10);
    CHECK_EQ(shell("grep -q 'process %d on' %s/.lock", (int)getpid(), place.path), 0);
}

TEST_MAIN()
