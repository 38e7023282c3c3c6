/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include <sys/syscall.h>

#include "store/window/listing.h"
#include "store/writer/session-private.h"

/* Snapshots of a session that no daemon records. */

#define NS 1000000000ULL

static int sick_fd = -1;

/* In place of the C library's: one descriptor has a disk that fails. */
int fsync(int fd) {
    if (fd == sick_fd) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static const Way ways[] = {
    {LAYOUT_FILE, 3}, {LAYOUT_FILE, 0}, {LAYOUT_DIRECTORY, 3}, {LAYOUT_DIRECTORY, 0}};

TEST(a_snapshot_has_exactly_the_samples_of_its_window_in_every_layout) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("cut");

        CHECK_OK(scene_init(&s));
        CHECK_OK(scene_record(&s, ways[i], 3));
        /* 250 us into the first, up to 100 us into the open one. */
        wanted.since_ns = s.first_ns[0] + 250 * 1000;
        wanted.until_ns = s.first_ns[2] + 100 * 1000;
        wanted.layout = ways[i].layout;
        wanted.zstd_level = ways[i].level;
        wanted.keep_frames = true;
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
        CHECK_EQ(s.info.samples, 2 * (750 + 1000 + 100));
        CHECK_EQ(count_read(s.path), 2 * (750 + 1000 + 100));
        CHECK_EQ(s.info.first_ns, wanted.since_ns);
        CHECK_EQ(s.info.last_ns, wanted.until_ns - 1000);
        CHECK_EQ(s.info.n_partial, 0);
        CHECK_EQ(count_left(&s), 2);
    }
}

TEST(a_snapshot_of_everything_includes_the_written_part_of_the_open_segment) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 2 * SAMPLES);
    CHECK_OK(write_samples(s.session, 0, s.first_ns[0] + 5 * 1000 * 1000, SAMPLES));
    CHECK_OK(end_sweep(s.session, ++s.sweep));
    CHECK(wait_written(s.session, s.sweep));
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 3 * SAMPLES);
    CHECK_EQ(count_read(s.path), 3 * SAMPLES);
}

enum { PIECE = 512, FILE_BYTES_MAX = 1 << 20 };

static int load_file(const char *path, char **ret, size_t *ret_size) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ char *bytes = malloc(FILE_BYTES_MAX);
    ssize_t n = fd < 0 || !bytes ? -1 : read(fd, bytes, FILE_BYTES_MAX);

    if (n < 0)
        return -EIO;
    *ret = TAKE_PTR(bytes);
    *ret_size = (size_t)n;
    return 0;
}

typedef struct Pieces {
    const char *snapshot;
    size_t size;
    unsigned n, found;
} Pieces;

/* What lies in the first half of a segment is within a compressed frame of samples. */
static int look_for_piece(void *userdata, const char *path) {
    _cleanup_free_ char *segment = NULL;
    Pieces *pieces = userdata;
    size_t size;
    int r = load_file(path, &segment, &size);

    if (r < 0 || size < 8 * (size_t)PIECE)
        return -EIO;
    pieces->n++;
    pieces->found += memmem(pieces->snapshot, pieces->size, segment + size / 4, PIECE) != NULL;
    return 0;
}

/* Of how many of the three segments the snapshot has a frame as it is. */
static int count_kept_frames(const Scene *s, const char *path) {
    _cleanup_free_ char *snapshot = NULL;
    Pieces pieces = {};
    int r = load_file(path, &snapshot, &pieces.size);

    pieces.snapshot = snapshot;
    if (r == 0)
        r = each_segment(&s->place, "default", look_for_piece, &pieces);
    return r < 0 || pieces.n != 3 ? -EIO : (int)pieces.found;
}

TEST(a_frame_within_the_window_is_copied_compressed) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    char kept[sizeof(s.path)];

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, (Way){LAYOUT_FILE, 1}, 3));
    wanted.zstd_level = 19;
    wanted.keep_frames = true;
    wanted.since_ns = s.first_ns[0] + 1000;
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 3 * 2 * SAMPLES - 2);
    CHECK_EQ(count_read(s.path), s.info.samples);
    memcpy(kept, s.path, sizeof(kept));
    wanted.name = "anew";
    wanted.keep_frames = false;
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(count_read(s.path), 3 * 2 * SAMPLES - 2);
    s.session = store_session_close(s.session);
    /* The window cuts the first segment, the other two are in it as a whole. */
    CHECK_EQ(count_kept_frames(&s, kept), 2);
    CHECK_EQ(count_kept_frames(&s, s.path), 0);
}

TEST(snapshots_work_after_their_folder_was_deleted) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("before");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(shell("rm -r %s/snapshots", s.place.path), 0);
    wanted.name = "after";
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(count_read(s.path), 2 * SAMPLES);
    CHECK_EQ(count_left(&s), 2);
    /* The snapshots that went with the folder are listed no more. */
    CHECK_OK(wait_housekeeper(&s));
    CHECK_EQ(snapshot_find(s.engine, "before", &s.info), -ENOENT);
    CHECK_OK(snapshot_find(s.engine, "after", &s.info));
    CHECK_EQ(snapshot_use(s.engine).used_bytes, s.info.bytes);
    CHECK_OK(remove_snapshot(&s, "after"));
    CHECK_EQ(count_left(&s), 0);
}

TEST(only_names_of_one_pattern_are_accepted) {
    static const char *const good[] = {"a", "9", "web-1", "a.b_c-D", "20260101T000000Z-2"};
    static const char *const bad[] = {"",    ".",   "..",  ".a",   "-a", "_a",
                                      "a/b", "a b", "a\n", "\xff", "ä"};
    char name[SNAPSHOT_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        CHECK(snapshot_name_is_valid(good[i]));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!snapshot_name_is_valid(bad[i]));
    memset(name, 'a', sizeof(name));
    name[SNAPSHOT_NAME_MAX - 1] = '\0';
    CHECK(snapshot_name_is_valid(name));
    name[SNAPSHOT_NAME_MAX - 1] = 'a';
    name[SNAPSHOT_NAME_MAX] = '\0';
    CHECK(!snapshot_name_is_valid(name));
}

TEST(a_name_can_be_used_once) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("mine"), bad = request("../mine");
    char first[SNAPSHOT_NAME_MAX];

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(make(&s, &wanted), -EEXIST);
    CHECK_EQ(make(&s, &bad), -EINVAL);
    CHECK_OK(shell("touch %s/snapshots/theirs.perf.data", s.place.path));
    /* Only the worker looks at the disk. */
    wanted.name = "theirs";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_EXISTS);
    wanted.name = NULL;
    CHECK_OK(make(&s, &wanted));
    memcpy(first, s.info.name, sizeof(first));
    CHECK_OK(make(&s, &wanted));
    CHECK(strcmp(first, s.info.name) != 0);
    CHECK_EQ(first[8], 'T');
}

TEST(a_missing_window_is_reported_with_the_existing_span) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("early");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    wanted.since_ns = 1;
    wanted.until_ns = s.first_ns[0] - NS;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_UNAVAILABLE);
    CHECK(s.failure.oldest_ns > 0 && s.failure.oldest_ns < s.failure.newest_ns);
    wanted = request("none");
    wanted.session = "nobody";
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_SESSION);
    wanted = request("backwards");
    wanted.since_ns = 5;
    wanted.until_ns = 5;
    CHECK_EQ(make(&s, &wanted), -EINVAL);
    CHECK_EQ(count_left(&s), 0);
}

TEST(filters_that_match_nothing_keep_no_snapshot_and_suggest_names) {
    static const char *const comms[] = {"workre"}, *const right[] = {"worker"},
                             *const units[] = {"shop"};
    static const uint32_t pids[] = {8};
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("typo");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    wanted.filter = (SnapshotFilter){.comms = comms, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "comm 'workre'");
    CHECK_EQ(s.failure.near.n, 1);
    CHECK_STREQ(s.failure.near.names[0].name, "worker");
    /* Of two filters the one is named that nothing passes. */
    wanted.filter = (SnapshotFilter){.comms = right, .n_comms = 1, .pids = pids, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "process 8");
    CHECK_EQ(s.failure.near.n, 0);
    wanted.filter = (SnapshotFilter){.units = units, .n_units = 1, .pids = pids, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_STREQ(s.failure.text, "process 8 and unit 'shop.service'");
    CHECK_EQ(count_left(&s), 0);
    /* A window without a sample is an answer where nothing was filtered. */
    wanted.filter = (SnapshotFilter){};
    wanted.since_ns = s.first_ns[0] + 100;
    wanted.until_ns = s.first_ns[0] + 900;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 0);
}

TEST(deletion_by_retention_is_logged) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("rest");
    uint64_t removed, bytes;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 4));
    CHECK_OK(store_vacuum_to(s.place.store,
                             &(StoreLimits){.max_bytes = UINT64_MAX, .max_segments = 1}, &removed,
                             &bytes));
    CHECK_EQ(removed, 2);
    wanted.since_ns = s.first_ns[0];
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 2 * 2 * SAMPLES);
    CHECK_EQ(s.info.n_partial, 1);
}

TEST(a_missing_segment_is_reported_and_the_rest_is_used) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("rest");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 4));
    CHECK_OK(shell("rm %s/sessions/default/00000002-*", s.place.path));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 3 * 2 * SAMPLES);
    CHECK_EQ(count_read(s.path), 3 * 2 * SAMPLES);
    CHECK_EQ(s.info.n_partial, 1);
    CHECK(strstr(s.info.partial[0], "00000002"));
}

TEST(a_damaged_segment_is_used_up_to_the_damage) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("rest");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[1], 3));
    CHECK_OK(shell("truncate -s 60000 %s/sessions/default/00000002-*.perf.data", s.place.path));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK(s.info.samples >= 2 * 2 * SAMPLES && s.info.samples < 3 * 2 * SAMPLES);
    CHECK(s.info.n_partial > 0);
    CHECK_EQ(count_read(s.path), s.info.samples);
}

TEST(a_disk_that_fails_at_the_last_step_leaves_no_snapshot) {
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("sick");

        CHECK_OK(scene_init(&s));
        CHECK_OK(scene_record(&s, ways[0], 1));
        wanted.layout = ways[i].layout;
        sick_fd = s.engine->folder;
        CHECK_OK(make(&s, &wanted));
        sick_fd = -1;
        CHECK(s.failed);
        CHECK_EQ(s.failure.error, SNAPSHOT_FAILED);
        CHECK_EQ(s.failure.code, -EIO);
        CHECK_EQ(count_left(&s), 0);
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
    }
}

TEST(no_user_gets_more_than_a_quarter_of_the_budget) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("big");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    wanted.zstd_level = 0;
    wanted.privileged = false;
    wanted.uid = 1000;
    /* One takes some 96 KiB. */
    s.place.store->snapshot_max_bytes = 448 << 10;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    wanted.name = "second";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_BUDGET);
    CHECK_EQ(s.failure.limit_bytes, 112 << 10);
    CHECK(s.failure.need_bytes > 112 << 10);
    CHECK_EQ(count_left(&s), 2);
    wanted.uid = 1001;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    wanted.uid = 1002;
    wanted.name = "third";
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    /* All users together have three quarters; the rest is root's. */
    wanted.uid = 1003;
    wanted.name = "fourth";
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    wanted.privileged = true;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(snapshot_use(s.engine).n, 4);
    CHECK(snapshot_use(s.engine).used_bytes > 4 * (90 << 10));
    CHECK_EQ(snapshot_use(s.engine).used_bytes, s.place.store->snapshot_bytes);
}

TEST(tiny_snapshots_count_with_a_minimum_size) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request(NULL);
    uint64_t limit = 16 * 4 * SNAPSHOT_LEAST_BYTES;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    s.place.store->snapshot_max_bytes = limit;
    wanted.until_ns = s.first_ns[0] + 10 * 1000;
    wanted.privileged = false;
    wanted.uid = 1000;
    for (unsigned i = 0; i < 16; i++) {
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed && s.info.bytes < SNAPSHOT_LEAST_BYTES / 4);
    }
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_BUDGET);
    CHECK_EQ(s.failure.limit_bytes, limit / 4);
    CHECK_EQ(s.failure.need_bytes, limit / 4 + SNAPSHOT_LEAST_BYTES);
    CHECK(snapshot_use(s.engine).used_bytes < limit / 16);
    CHECK_EQ(snapshot_use(s.engine).used_bytes, s.place.store->snapshot_bytes);
    /* Another one's, and root's, are his own. */
    wanted.uid = 1001;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    wanted.privileged = true;
    for (unsigned i = 0; i < 20; i++) {
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
    }
}

/* A segment before, one with other users' memory, and one behind it. */
static int record_memory(Scene *s) {
    int r = 0;

    for (unsigned i = 0; r == 0 && i < 3; i++) {
        SessionConfig config = store_session("default", LAYOUT_FILE, 3);

        s->session = store_session_close(s->session);
        r = store_session_new(s->place.store, &config, i == 1, &s->session);
        if (r == 0)
            r = begin_segment(&s->place, s->session);
        s->first_ns[i] = clock_anchor_now().monotonic_ns;
        if (r == 0)
            r = write_samples(s->session, 0, s->first_ns[i], SAMPLES);
        if (r == 0)
            r = end_sweep(s->session, 1);
        if (r == 0 && !wait_written(s->session, 1))
            r = -ETIMEDOUT;
        usleep(2000);
    }
    return r;
}

TEST(a_window_with_memory_of_other_users_is_refused) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("cut");

    CHECK_OK(scene_init(&s));
    CHECK_OK(record_memory(&s));
    /* Nothing is known of its segments after a restart. */
    s.session = store_session_close(s.session);
    end_engine(&s);
    CHECK_OK(place_again(&s.place));
    CHECK_OK(begin_engine(&s));
    wanted.privileged = false;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_FORBIDDEN);
    wanted.since_ns = s.first_ns[1] + 500 * 1000;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_FORBIDDEN);
    CHECK_EQ(count_left(&s), 0);
    wanted.since_ns = s.first_ns[2];
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && !s.info.sensitive);
    wanted.name = "before";
    wanted.since_ns = 0;
    wanted.until_ns = s.first_ns[0] + 1000 * 1000;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && !s.info.sensitive);
    wanted.name = "all";
    wanted.until_ns = 0;
    wanted.privileged = true;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed && s.info.sensitive);
    CHECK_EQ(s.info.samples, 3 * SAMPLES);
}

static uint64_t later_ns;

static ClockAnchor later(void) {
    ClockAnchor now = clock_anchor_now();

    now.monotonic_ns += later_ns;
    now.real_ns += later_ns;
    now.boot_ns += later_ns;
    return now;
}

static bool yes(void) {
    return true;
}

TEST(old_snapshots_expire_unless_they_are_pinned) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    SnapshotInfo info;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    s.place.store->now = later;
    s.place.store->synchronised = yes;
    later_ns = 0;
    CHECK_OK(make(&s, &wanted));
    wanted.name = "gone";
    CHECK_OK(make(&s, &wanted));
    wanted.name = "pinned";
    wanted.pin = true;
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.expires_ns, 0);
    CHECK_OK(pin_snapshot(&s, "kept"));
    later_ns = 31 * 86400 * NS;
    snapshot_expire(s.engine);
    CHECK_EQ(snapshot_find(s.engine, "gone", &info), -ENOENT);
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
    CHECK_OK(snapshot_find(s.engine, "pinned", &info));
    CHECK_OK(wait_housekeeper(&s));
    CHECK_EQ(count_left(&s), 4);
}

TEST(a_clock_jump_removes_no_snapshot) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("kept");
    SnapshotInfo info;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    s.place.store->believed.base.real_ns = 0;
    s.place.store->synchronised = yes;
    snapshot_expire(s.engine);
    CHECK_OK(snapshot_find(s.engine, "kept", &info));
}

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
        snapshot_file_name(&s.info, s.info.n_files - 1, file);
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

static void count_done(void *userdata, const SnapshotFailure *failure, const SnapshotInfo *info) {
    Scene *s = userdata;

    s->failed |= failure != NULL;
    if (--s->sweep == 0)
        loop_stop(s->loop);
}

TEST(many_simultaneous_snapshots_are_made_and_too_many_are_refused) {
    _cleanup_(scene_done) Scene s;
    const SnapshotCallbacks callbacks = {.on_done = count_done, .userdata = &s};
    SnapshotRequest wanted = request(NULL);
    Snapshot *snapshot;
    unsigned refused = 0;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    s.sweep = 0;
    for (unsigned i = 0; i < 60; i++) {
        int r = snapshot_begin(s.engine, &wanted, &callbacks, &snapshot);

        CHECK(r == 0 || r == -EBUSY);
        s.sweep += r == 0;
        refused += r == -EBUSY;
    }
    CHECK(s.sweep >= SNAPSHOT_WAITING_MAX);
    CHECK_OK(loop_run(s.loop));
    CHECK(!s.failed);
    CHECK_EQ(snapshot_use(s.engine).n, 60 - refused);
    wanted.privileged = false;
    for (unsigned i = refused = 0; i < 20; i++) {
        int r = snapshot_begin(s.engine, &wanted, &callbacks, &snapshot);

        s.sweep += r == 0;
        refused += r == -EBUSY;
    }
    CHECK(refused >= 20 - SNAPSHOT_WAITING_UID_MAX - 2 * SNAPSHOT_WORKERS - 2);
    wanted.uid = 5;
    CHECK_OK(snapshot_begin(s.engine, &wanted, &callbacks, &snapshot));
    s.sweep++;
    CHECK_OK(loop_run(s.loop));
}

TEST(filters_for_cpus_processes_and_threads_keep_their_samples) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("one");
    static const uint32_t pids[] = {8, 7}, others[] = {8};
    static const char *const comms[] = {"worker"}, *const strangers[] = {"work"};

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    wanted.filter = (SnapshotFilter){.by_cpu = true, .cpus = {2}};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 2 * SAMPLES);
    wanted = request("pids");
    wanted.filter = (SnapshotFilter){.pids = pids, .n_pids = 2};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 4 * SAMPLES);
    wanted = request("others");
    wanted.filter = (SnapshotFilter){.pids = others, .n_pids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    wanted = request("threads");
    wanted.filter = (SnapshotFilter){.tids = pids, .n_tids = 2};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.info.samples, 4 * SAMPLES);
    wanted = request("other-threads");
    wanted.filter = (SnapshotFilter){.pids = pids, .n_pids = 2, .tids = others, .n_tids = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    CHECK_STREQ(s.failure.text, "thread 8");
    wanted = request("strangers");
    wanted.filter = (SnapshotFilter){.comms = strangers, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
    wanted = request("comms");
    wanted.filter = (SnapshotFilter){.comms = comms, .n_comms = 1};
    CHECK_OK(make(&s, &wanted));
    CHECK(s.info.samples <= 4 * SAMPLES);
}

TEST(a_filter_for_an_unrecorded_cpu_is_refused_by_name) {
    static const struct {
        SnapshotFilter filter;
        const char *text; /* NULL: it is made */
    } rows[] = {{{.by_cpu = true, .cpus = {1 | 1 << 3}}, "CPU 3"},
                {{.by_cpu = true, .cpus = {0, 0, 2}}, "CPU 17"},
                {{.by_cpu = true, .cpus = {3}}, NULL}};
    _cleanup_(scene_done) Scene s;

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 2));
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SnapshotRequest wanted = request("some");

        wanted.filter = rows[i].filter;
        CHECK_OK(make(&s, &wanted));
        CHECK_EQ(s.failed, rows[i].text != NULL);
        if (!rows[i].text)
            continue;
        CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
        CHECK_STREQ(s.failure.text, rows[i].text);
        CHECK_EQ(count_left(&s), 0);
    }
}

/* How a recording begins a process that was born at that time, and what happened to it next. */
static void put_life(Buffer *b, uint64_t time, const char *parent, const char *name) {
    PdTrailer trailer = store_trailer(time);
    const PdTask fork = {.pid = 7, .tid = 7, .ppid = 1, .ptid = 1, .time = time};
    PdComm comm = {
        .pid = 7, .tid = 7, .comm = {.data = (const uint8_t *)parent, .size = strlen(parent)}};

    pd_emit_task(b, &trailer, PD_RECORD_FORK, PD_MISC_FORK_EXEC, &fork);
    pd_emit_comm(b, &trailer, &comm);
    trailer.time = time + 10;
    comm.comm = (Bytes){.data = (const uint8_t *)name, .size = strlen(name)};
    pd_emit_comm(b, &trailer, &comm);
}

/* A real FORK, of a parent that the segment holds. */
static void put_child(Buffer *b, uint64_t time) {
    PdTrailer trailer = store_trailer(time);
    const PdTask fork = {.pid = 8, .tid = 8, .ppid = 7, .ptid = 7, .time = time};

    pd_emit_task(b, &trailer, PD_RECORD_FORK, 0, &fork);
}

static int begin_bare_segment(Scene *s) {
    SegmentHead head = {.events = s->place.events, .clock = clock_anchor_now()};
    int r;

    put_kernel(&head.preamble, head.clock.monotonic_ns);
    pd_emit_mark(&head.preamble, PD_RECORD_FINISHED_INIT);
    r = store_session_begin(s->session, &head);
    buffer_done(&head.preamble);
    return r;
}

/* As a sweep finds a pid's second life on one CPU before it finds the first one on another. */
static int record_lives_out_of_order(Scene *s) {
    SessionConfig config = store_session("default", LAYOUT_FILE, 3);
    StoreBatch lives[] = {{.kind = STORE_SIDE_BAND}, {.kind = STORE_SIDE_BAND}};
    StoreBatch child = {.kind = STORE_SAMPLES, .cpu = 0, .samples = 100};
    int r = store_session_new(s->place.store, &config, false, &s->session);

    /* Not in the first segment, which nothing was told before. */
    if (r == 0)
        r = begin_bare_segment(s);
    if (r == 0)
        r = write_samples(s->session, 0, clock_anchor_now().monotonic_ns, 10);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    usleep(2000);
    if (r == 0)
        r = begin_bare_segment(s);
    s->first_ns[0] = clock_anchor_now().monotonic_ns;
    put_life(&lives[0].records, s->first_ns[0] + 600000, "parent", "second");
    put_child(&lives[0].records, s->first_ns[0] + 600100);
    put_life(&lives[1].records, s->first_ns[0] + 1000, "parent", "first");
    child.first_ns = s->first_ns[0] + 1100000;
    child.last_ns = child.first_ns + 99 * 1000;
    for (unsigned i = 0; i < child.samples; i++) {
        put_store_sample(&child.records, 0, child.first_ns + i * 1000ULL);
        store_u32(child.records.data + child.records.size - 24, 8, false);
        store_u32(child.records.data + child.records.size - 20, 8, false);
    }
    if (r == 0)
        r = store_session_write(s->session, &lives[0]);
    if (r == 0)
        r = write_samples(s->session, 0, s->first_ns[0] + 601000, 300);
    if (r == 0)
        r = store_session_write(s->session, &child);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    if (r == 0)
        r = store_session_write(s->session, &lives[1]);
    if (r == 0)
        r = write_samples(s->session, 1, s->first_ns[0] + 2000, 300);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    buffer_done(&lives[0].records);
    buffer_done(&lives[1].records);
    buffer_done(&child.records);
    return r == 0 && !wait_written(s->session, s->sweep) ? -ETIMEDOUT : r;
}

TEST(each_process_with_a_reused_pid_keeps_its_name) {
    static const struct {
        const char *comm;
        unsigned samples;
    } lives[] = {{"first", 300}, {"second", 400}, {"parent", 0}};
    _cleanup_(scene_done) Scene s;

    CHECK_OK(scene_init(&s));
    CHECK_OK(record_lives_out_of_order(&s));
    for (size_t i = 0; i < ARRAY_SIZE(lives); i++) {
        SnapshotRequest wanted = request(lives[i].comm);

        wanted.filter = (SnapshotFilter){.comms = &lives[i].comm, .n_comms = 1};
        CHECK_OK(make(&s, &wanted));
        CHECK_EQ(s.failed, lives[i].samples == 0);
        if (s.failed)
            CHECK_EQ(s.failure.error, SNAPSHOT_NO_MATCH);
        else
            CHECK_EQ(s.info.samples, lives[i].samples);
    }
}

typedef struct Listed {
    unsigned n;
    StoreSegmentInfo last;
} Listed;

static int note_segment(void *userdata, const StoreSegmentInfo *info) {
    Listed *listed = userdata;

    listed->n++;
    listed->last = *info;
    return 0;
}

static int keep_first(void *userdata, const StoreSegmentInfo *info) {
    Listed *listed = userdata;

    if (listed->n++ == 0)
        listed->last = *info;
    return 0;
}

/* Until the writer has nothing left to do: what the open segment takes is known then. */
static bool wait_idle(StoreSession *session) {
    bool idle = false;

    for (unsigned i = 0; !idle && i < 10000; i++) {
        pthread_mutex_lock(&session->mutex);
        idle = !session->first;
        pthread_mutex_unlock(&session->mutex);
        if (!idle)
            usleep(1000);
    }
    return idle;
}

TEST(segments_are_listed_and_leased_while_they_are_read) {
    _cleanup_(scene_done) Scene s;
    _cleanup_(store_lease_freep) StoreLease *lease = NULL;
    _cleanup_close_ int fd = -1;
    uint64_t bytes, removed, freed, used;
    bool sensitive;
    Listed listed = {};

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, ways[0], 3));
    CHECK(wait_idle(s.session));
    CHECK_OK(store_each_segment(s.place.store, NULL, 0, 0, note_segment, &listed));
    CHECK_EQ(listed.n, 3);
    CHECK_EQ(listed.last.completeness, SEGMENT_IS_OPEN);
    CHECK_EQ(listed.last.samples, 2 * SAMPLES);
    CHECK_EQ(store_each_segment(s.place.store, "nobody", 0, 0, note_segment, &listed), -ENOENT);
    listed = (Listed){};
    CHECK_OK(store_each_segment(s.place.store, "default", 0, 1, note_segment, &listed));
    CHECK_EQ(listed.n, 0);
    listed = (Listed){};
    CHECK_OK(store_each_segment(s.place.store, "default", 0, 0, keep_first, &listed));
    CHECK_OK(store_open_segment(s.place.store, "default", listed.last.name, "", &fd, &bytes,
                                &sensitive, &lease));
    CHECK(bytes > 1000 && !sensitive);
    used = store_use(s.place.store).used_bytes;
    CHECK_OK(store_vacuum_to(s.place.store, &(StoreLimits){.max_bytes = 0}, &removed, &freed));
    CHECK_EQ(removed, 2);
    CHECK(store_use(s.place.store).used_bytes > used - freed);
    CHECK(pread(fd, &bytes, 8, 0) == 8);
    lease = store_lease_free(lease);
    CHECK_EQ(store_use(s.place.store).used_bytes, used - freed);
}

TEST_MAIN()
