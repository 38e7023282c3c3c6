/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include <sys/syscall.h>

#include "util/clock.h"

/* Snapshots of a session that no daemon records: what they contain, and which are refused. */

static int sick_fd = -1;

/* In place of the C library's: one descriptor has a disk that fails. */
int fsync(int fd) {
    if (fd == sick_fd) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

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
    wanted.until_ns = s.first_ns[0] - NS_PER_SECOND;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_UNAVAILABLE);
    CHECK(s.failure.oldest_ns > 0 && s.failure.oldest_ns < s.failure.newest_ns);
    CHECK_EQ(s.failure.reason, PD_GAP_NOT_STARTED);
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

TEST_MAIN()
