/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"

#include "util/clock.h"

/* The space that snapshots may take, and for how long they are kept. */

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
    later_ns = 31 * 86400 * NS_PER_SECOND;
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

static bool clock_is_set;

/* A machine whose wall clock begins in 1970 with each boot, until somebody sets it. */
static ClockAnchor unset(void) {
    ClockAnchor now = later();

    if (!clock_is_set)
        now.real_ns = now.boot_ns;
    return now;
}

static bool is_set(void) {
    return clock_is_set;
}

static void use_clock(Scene *s, const char *boot) {
    Store *store = s->place.store;

    store->now = unset;
    store->synchronised = is_set;
    snprintf(store->boot, sizeof(store->boot), "%s", boot);
    store->believed.base = unset();
}

/* A snapshot before the clock was set. Later it was set, and is believed. */
static int make_before_clock_is_set(Scene *s) {
    SnapshotRequest wanted = request("early");
    int r;

    later_ns = 0;
    clock_is_set = false;
    use_clock(s, "first");
    r = scene_record(s, ways[0], 1);
    if (r == 0)
        r = make(s, &wanted);
    if (s->failed)
        return -EIO;
    clock_is_set = true;
    later_ns = 2 * 3600 * NS_PER_SECOND;
    s->place.store->believed.base = unset();
    return r;
}

static int find_after(Scene *s, unsigned days) {
    SnapshotInfo info;

    later_ns = days * 86400 * NS_PER_SECOND;
    snapshot_expire(s->engine);
    return snapshot_find(s->engine, "early", &info);
}

TEST(a_snapshot_of_an_unset_clock_expires_by_the_boot_clock) {
    _cleanup_(scene_done) Scene s;
    SnapshotInfo info;
    uint64_t real_ns;

    CHECK_OK(scene_init(&s));
    CHECK_OK(make_before_clock_is_set(&s));
    CHECK_OK(find_after(&s, 1));
    CHECK_OK(snapshot_find(s.engine, "early", &info));
    real_ns = unset().real_ns;
    CHECK(info.expires_ns > real_ns + 28 * 86400 * NS_PER_SECOND);
    CHECK(info.expires_ns <= real_ns + 29 * 86400 * NS_PER_SECOND);
    CHECK_OK(find_after(&s, 29));
    /* A new daemon of the same boot knows when it was made. */
    end_engine(&s);
    CHECK_OK(begin_engine(&s));
    CHECK_OK(find_after(&s, 29));
    CHECK_EQ(find_after(&s, 31), -ENOENT);
}

TEST(a_snapshot_of_an_unset_clock_of_another_boot_is_as_old_as_its_listing) {
    _cleanup_(scene_done) Scene s;

    CHECK_OK(scene_init(&s));
    CHECK_OK(make_before_clock_is_set(&s));
    end_engine(&s);
    use_clock(&s, "second");
    later_ns = 20 * 86400 * NS_PER_SECOND;
    CHECK_OK(begin_engine(&s));
    CHECK_OK(find_after(&s, 49));
    CHECK_EQ(find_after(&s, 51), -ENOENT);
}

TEST(a_snapshot_of_an_earlier_version_expires_by_the_wall_clock) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("early");

    CHECK_OK(scene_init(&s));
    later_ns = 0;
    clock_is_set = true;
    use_clock(&s, "first");
    CHECK_OK(scene_record(&s, ways[0], 1));
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    end_engine(&s);
    CHECK_EQ(shell("sed -i '/\"unsynchronised\"\\|\"boot\"\\|\"created_boot_ns\"/d' "
                   "%s/snapshots/early.json",
                   s.place.path),
             0);
    later_ns = 29 * 86400 * NS_PER_SECOND;
    CHECK_OK(begin_engine(&s));
    CHECK_OK(find_after(&s, 29));
    CHECK_EQ(find_after(&s, 31), -ENOENT);
}

TEST_MAIN()
