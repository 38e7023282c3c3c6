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

TEST_MAIN()
