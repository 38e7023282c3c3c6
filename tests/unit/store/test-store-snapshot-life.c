/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include <semaphore.h>
#include <sys/syscall.h>

/* Snapshots after a restart, transient ones, and those that are cancelled. */

static int count_one(void *userdata, const SnapshotInfo *info) {
    ++*(unsigned *)userdata;
    return 0;
}

TEST(finished_snapshots_survive_a_restart_and_unfinished_ones_are_deleted) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    SnapshotInfo info;
    unsigned n = 0;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    wanted.reason = "odd \xff\n\"reason\"";
    wanted.pin = true;
    wanted.uid = 77;
    CHECK_OK(make(&s, &wanted));
    end_engine(&s);
    CHECK_OK(shell("cd %s/snapshots && mkdir .half.part && touch .half.part/data .other.part "
                   "alone.json lost.perf.data",
                   s.place.path));
    CHECK_OK(begin_engine(&s));
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
    CHECK_STREQ(info.reason, wanted.reason);
    CHECK_EQ(info.uid, 77);
    CHECK_EQ(info.samples, 2 * SAMPLES);
    CHECK(info.pinned && info.bytes > 1000);
    CHECK_OK(snapshot_find(s.engine, "lost", &info));
    CHECK(info.sensitive && info.pinned);
    CHECK_OK(snapshot_each(s.engine, count_one, &n));
    CHECK_EQ(n, 2);
    CHECK_EQ(count_left(&s), 3);
    CHECK_OK(remove_snapshot(&s, "kept"));
    CHECK_EQ(remove_snapshot(&s, "kept"), -ENOENT);
    CHECK_EQ(count_left(&s), 1);
}

enum { STORE_READERS = 64992, STORE_ADMINS = 64993 };

/* Changes the group, as the keeper does, unless it is gone. */
static int change_group(void *userdata, int fd, bool sensitive) {
    const bool *gone = userdata;

    if (*gone)
        return -ETIMEDOUT;
    return fchown(fd, (uid_t)-1, sensitive ? STORE_ADMINS : STORE_READERS) < 0 ? -errno : 0;
}

/* A new daemon on the same store. */
static int restart(Scene *s, bool *gone) {
    s->session = store_session_close(s->session);
    end_engine(s);
    s->place.store = store_free(s->place.store);
    return store_open(&(StoreOptions){.path = s->place.path,
                                      .environment = s->place.environment,
                                      .config = s->place.config,
                                      .seal = change_group,
                                      .userdata = gone},
                      &s->place.store)
               ?: begin_engine(s);
}

/* How many files of snapshots do not have a group. */
static unsigned count_without(const Scene *s, unsigned group) {
    char command[200];
    unsigned n = 9999;
    FILE *found;

    snprintf(command, sizeof(command), "find %s/snapshots -type f ! -gid %u | wc -l", s->place.path,
             group);
    found = popen(command, "re");
    if (!found || fscanf(found, "%u", &n) != 1)
        n = 9999;
    if (found)
        (void)pclose(found);
    return n;
}

TEST(an_unsealed_snapshot_is_sealed_at_the_next_start) {
    static const Layout layouts[] = {LAYOUT_FILE, LAYOUT_DIRECTORY};

    if (geteuid() != 0)
        TEST_SKIP("needs root to give files to a group");
    for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("kept");
        bool gone = true;

        wanted.layout = layouts[i];
        CHECK_OK(scene_init(&s));
        CHECK_OK(restart(&s, &gone));
        CHECK_OK(scene_record(&s, ways[0], 1));
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
        CHECK(count_without(&s, STORE_READERS) >= 2);
        gone = false;
        CHECK_OK(restart(&s, &gone));
        CHECK_EQ(count_without(&s, STORE_READERS), 0);
        /* The seal of its manifest alone took too long. */
        CHECK_OK(shell("chgrp 0 %s/snapshots/kept.json", s.place.path));
        CHECK_EQ(count_without(&s, STORE_READERS), 1);
        CHECK_OK(restart(&s, &gone));
        CHECK_EQ(count_without(&s, STORE_READERS), 0);
    }
}

/* What nobody knows the readers of is for those alone who may read anything. */
TEST(an_unsealed_snapshot_without_a_manifest_is_for_administrators) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    bool gone = true;

    if (geteuid() != 0)
        TEST_SKIP("needs root to give files to a group");
    CHECK_OK(scene_init(&s));
    CHECK_OK(restart(&s, &gone));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(shell("rm %s/snapshots/kept.json", s.place.path));
    gone = false;
    CHECK_OK(restart(&s, &gone));
    CHECK_EQ(count_without(&s, STORE_ADMINS), 0);
}

TEST(a_transient_snapshot_is_deleted_after_it_was_read) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request(NULL);
        uint64_t bytes;
        unsigned n = 0;
        char file[16];
        int fd;

        CHECK_OK(scene_init(&s));
        CHECK_OK(scene_record(&s, ways[0], 1));
        wanted.transient = true;
        wanted.layout = ways[i].layout;
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
        CHECK_OK(snapshot_each(s.engine, count_one, &n));
        CHECK_EQ(n, 0);
        CHECK(snapshot_use(s.engine).used_bytes > 0);
        layout_file_name(s.info.layout, s.info.n_files - 1, file);
        CHECK_OK(snapshot_open_file(s.engine, &s.info, file, &fd, &bytes));
        CHECK(bytes > 0);
        closep(&fd);
        CHECK_EQ(snapshot_open_file(s.engine, &s.info, "data.9999", &fd, &bytes), -ENOENT);
        CHECK_EQ(snapshot_open_file(s.engine, &s.info, "../lost", &fd, &bytes), -ENOENT);
        CHECK_OK(remove_snapshot(&s, s.info.name));
        CHECK_EQ(count_left(&s), 0);
    }
}

TEST(a_transient_snapshot_may_have_a_name_that_exists) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request(NULL);

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    for (unsigned i = 1; i <= 8; i++) {
        char name[SNAPSHOT_NAME_MAX];

        snprintf(name, sizeof(name), "transient-%u", i + 8);
        wanted.name = name;
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
    }
    wanted.name = NULL;
    wanted.transient = true;
    for (unsigned i = 0; i < 4; i++) {
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
    }
    CHECK_EQ(count_left(&s), 2 * 8 + 4);
}

TEST(a_cancelled_snapshot_leaves_nothing) {
    _cleanup_(scene_done) Scene s;
    const SnapshotCallbacks callbacks = {.on_done = on_done, .userdata = &s};
    Snapshot *snapshots[6];
    SnapshotRequest wanted = request(NULL);

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 3));
    for (size_t i = 0; i < ARRAY_SIZE(snapshots); i++)
        CHECK_OK(snapshot_begin(s.engine, &wanted, &callbacks, &snapshots[i]));
    for (size_t i = 0; i < ARRAY_SIZE(snapshots); i++)
        snapshots[i] = snapshot_cancel(snapshots[i]);
    wanted.name = "last";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.done && !s.failed);
    CHECK_STREQ(s.info.name, "last");
    /* Jobs that ran when they were cancelled end before the engine does. */
    end_engine(&s);
    CHECK_EQ(count_left(&s), 2);
}

static bool job_has_ended(SnapshotEngine *engine, const Snapshot *job) {
    bool has_ended;

    pthread_mutex_lock(&engine->mutex);
    has_ended = job->state == JOB_ENDED;
    pthread_mutex_unlock(&engine->mutex);
    return has_ended;
}

TEST(a_snapshot_cancelled_after_its_build_is_removed) {
    _cleanup_(scene_done) Scene s;
    const SnapshotCallbacks callbacks = {.on_done = on_done, .userdata = &s};
    SnapshotRequest wanted = request("made");
    Snapshot *snapshot;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(snapshot_begin(s.engine, &wanted, &callbacks, &snapshot));
    while (!job_has_ended(s.engine, snapshot))
        usleep(1000);
    CHECK_EQ(count_left(&s), 2);
    CHECK(!snapshot_cancel(snapshot));
    wanted.name = "last";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.done && !s.failed);
    /* The housekeeper may have the removal still before it. */
    end_engine(&s);
    CHECK_EQ(count_left(&s), 2);
}

/* What an administrator does who moves the snapshots to another disk. */
static int replace_folder_by_copy(const Scene *s) {
    return shell("cd %s && cp -a snapshots copy && mv snapshots old && mv copy snapshots",
                 s->place.path) == 0
               ? 0
               : -EIO;
}

static bool has_file(const Scene *s, const char *name) {
    char path[256];

    snprintf(path, sizeof(path), "%s/snapshots/%s", s->place.path, name);
    return access(path, F_OK) == 0;
}

TEST(snapshots_are_listed_again_after_a_copy_replaced_their_folder) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("before");
    SnapshotInfo before, loose, after;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(pin_snapshot(&s, "before"));
    wanted.name = "loose";
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(replace_folder_by_copy(&s));
    wanted.name = "after";
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_OK(wait_housekeeper(&s));
    CHECK(has_file(&s, "before.perf.data") && has_file(&s, "before.json"));
    CHECK_EQ(count_left(&s), 6);
    CHECK_OK(snapshot_find(s.engine, "before", &before));
    CHECK_OK(snapshot_find(s.engine, "loose", &loose));
    CHECK_OK(snapshot_find(s.engine, "after", &after));
    CHECK(before.pinned && !loose.pinned);
    CHECK_EQ(before.samples, 2 * SAMPLES);
    CHECK_EQ(snapshot_use(s.engine).n, 3);
    CHECK_EQ(snapshot_use(s.engine).used_bytes, before.bytes + loose.bytes + after.bytes);
    /* They are snapshots like any other. */
    CHECK_OK(pin_snapshot(&s, "loose"));
    CHECK_OK(remove_snapshot(&s, "before"));
    CHECK_EQ(count_left(&s), 4);
}

TEST(a_folder_that_replaces_another_is_listed_as_it_is) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    SnapshotInfo info;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    wanted.name = "left";
    CHECK_OK(make(&s, &wanted));
    wanted.name = NULL;
    wanted.transient = true;
    CHECK_OK(make(&s, &wanted));
    CHECK_OK(replace_folder_by_copy(&s));
    CHECK_EQ(shell("cd %s/snapshots && rm left.* && touch new.perf.data .made.part alone.json",
                   s.place.path),
             0);
    wanted = request("after");
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_OK(wait_housekeeper(&s));
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
    CHECK_OK(snapshot_find(s.engine, "new", &info));
    CHECK(info.pinned && info.sensitive);
    CHECK_EQ(snapshot_find(s.engine, "left", &info), -ENOENT);
    CHECK_EQ(snapshot_use(s.engine).n, 3);
    /* What is unfinished may belong to a snapshot in progress. */
    CHECK(has_file(&s, ".made.part") && has_file(&s, "alone.json"));
    wanted.name = "left";
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
}

/* A disk that takes its time for the first file, if there is one. */
static struct {
    atomic_bool is_slow;
    sem_t asked, answers;
} disk;

/* In place of the C library's. */
int fdatasync(int fd) {
    if (atomic_exchange(&disk.is_slow, false)) {
        sem_post(&disk.asked);
        sem_wait(&disk.answers);
    }
    return (int)syscall(SYS_fdatasync, fd);
}

TEST(a_snapshot_in_progress_does_not_take_its_data_from_a_copy) {
    _cleanup_(scene_done) Scene s;
    const SnapshotCallbacks callbacks = {.on_done = on_done, .userdata = &s};
    SnapshotRequest wanted = request("torn"), other = request("other");
    Snapshot *snapshot;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    sem_init(&disk.asked, 0, 0);
    sem_init(&disk.answers, 0, 0);
    atomic_store(&disk.is_slow, true);
    CHECK_OK(snapshot_begin(s.engine, &wanted, &callbacks, &snapshot));
    sem_wait(&disk.asked);
    CHECK_OK(replace_folder_by_copy(&s));
    CHECK_OK(make(&s, &other));
    CHECK(!s.failed);
    sem_post(&disk.answers);
    CHECK_OK(loop_run(s.loop));
    CHECK(s.failed);
    CHECK_EQ(s.failure.code, -ESTALE);
    CHECK_OK(wait_housekeeper(&s));
    CHECK_EQ(snapshot_find(s.engine, "torn", &s.info), -ENOENT);
    CHECK_EQ(count_left(&s), 2);
}

TEST_MAIN()
