/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-scene.h"
#include "store/window/window.h"

/* Which part of a window was recorded: idle times, gaps between segments, and another boot. */

#define S 1000000000ULL

/* A segment of this boot: it covers these seconds of its clock, and 1000 s more by the time of day.
 */
static Entry segment(uint64_t number, uint64_t from_s, uint64_t to_s, PdGapReason after) {
    return (Entry){.name = {.number = number, .state = SEGMENT_CLOSED},
                   .is_known = true,
                   .this_boot = true,
                   .covered = true,
                   .covered_from_ns = from_s * S,
                   .covered_to_ns = to_s * S,
                   .real_shift_ns = 1000 * S,
                   .after = after,
                   .boot = "this"};
}

static int compose_query(PdCoverage *ret, const WindowQuery *query, const Entry *entries,
                         size_t n) {
    const Entry *list[8];
    Window w = {.boot = "this"};
    int r;

    for (size_t i = 0; i < n; i++)
        list[i] = &entries[i];
    r = window_cover(&w, query, list, n);
    *ret = w.coverage;
    return r;
}

/* Seconds by the time of day; 0: open. */
static int compose(PdCoverage *ret, uint64_t since_s, uint64_t until_s, const Entry *entries,
                   size_t n) {
    return compose_query(ret, &(WindowQuery){.since_ns = since_s * S, .until_ns = until_s * S},
                         entries, n);
}

/* Seconds by the clock of the samples. */
static int compose_last(PdCoverage *ret, uint64_t since_s, uint64_t until_s, const Entry *entries,
                        size_t n) {
    return compose_query(
        ret, &(WindowQuery){.since_ns = since_s * S, .until_ns = until_s * S, .by_monotonic = true},
        entries, n);
}

static bool is_gap(const PdGap *gap, uint64_t from_s, uint64_t to_s, PdGapReason reason) {
    if (gap->from_ns == from_s * S && gap->to_ns == to_s * S && gap->reason == reason)
        return true;
    printf("# %g to %g (%s)\n", (double)gap->from_ns / S, (double)gap->to_ns / S,
           pd_gap_reason_text(gap->reason));
    return false;
}

TEST(consecutive_segments_have_no_gap) {
    const Entry entries[] = {segment(1, 10, 20, PD_GAP_DELETED), segment(2, 20, 30, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    CHECK_OK(compose(&c, 1012, 1028, entries, 2));
    CHECK_EQ(c.n_gaps, 0);
    CHECK_EQ(c.from_ns, 1012 * S);
    CHECK_EQ(c.to_ns, 1028 * S);
    CHECK(pd_coverage_is_whole(&c));
}

TEST(a_gap_between_two_segments_has_the_reason_of_the_first) {
    const Entry entries[] = {segment(1, 10, 20, PD_GAP_RELOADED), segment(2, 25, 30, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    CHECK_OK(compose(&c, 1005, 1040, entries, 2));
    CHECK_EQ(c.n_gaps, 3);
    CHECK(is_gap(&c.gaps[0], 1005, 1010, PD_GAP_NOT_STARTED));
    CHECK(is_gap(&c.gaps[1], 1020, 1025, PD_GAP_RELOADED));
    CHECK(is_gap(&c.gaps[2], 1030, 1040, PD_GAP_DOWN));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 15 * S);
}

TEST(each_time_of_a_window_is_on_the_wall_clock_of_its_own_segment) {
    PdGap pause = {.from_ns = 12 * S, .to_ns = 13 * S, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED};
    Entry entries[] = {segment(1, 10, 20, PD_GAP_DOWN), segment(2, 22, 50, PD_GAP_DOWN),
                       segment(3, 50, 60, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    entries[0].gaps[0] = pause;
    entries[0].n_gaps = 1;
    /* The machine slept for 100 s while nothing recorded, and again for 50 s. */
    entries[1].real_shift_ns = 1100 * S;
    entries[2].real_shift_ns = 1150 * S;
    CHECK_OK(compose_last(&c, 11, 55, entries, 3));
    CHECK_EQ(c.from_ns, 1011 * S);
    CHECK_EQ(c.to_ns, 1205 * S);
    CHECK_EQ(c.n_gaps, 2);
    CHECK(is_gap(&c.gaps[0], 1012, 1013, PD_GAP_PAUSED));
    CHECK(is_gap(&c.gaps[1], 1020, 1122, PD_GAP_DOWN));
    /* Both bounds lie in the gap. */
    pd_coverage_done(&c);
    CHECK_OK(compose_last(&c, 20, 21, entries, 3));
    CHECK_EQ(c.from_ns, 1020 * S);
    /* It was set back by an hour. */
    pd_coverage_done(&c);
    for (size_t i = 0; i < 3; i++)
        entries[i].real_shift_ns = (i == 0 ? 4600 : 1000) * S;
    CHECK_OK(compose_last(&c, 11, 55, entries, 3));
    CHECK_EQ(c.to_ns, 1055 * S);
    CHECK_EQ(c.from_ns, 1011 * S);
    CHECK(pd_coverage_recorded_ns(&c) <= 44 * S);
}

TEST(a_sleep_between_two_adjacent_segments_is_a_gap) {
    Entry entries[] = {segment(1, 10, 20, PD_GAP_DOWN), segment(2, 20, 30, PD_GAP_DOWN),
                       segment(3, 30, 40, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage last = {}, since = {}, edge = {}, set = {};

    /* It slept for 500 s, after it had slept for 7 s before the first segment. */
    for (size_t i = 0; i < 3; i++)
        entries[i].slept_ns = (i == 0 ? 7 : 507) * S;
    entries[1].real_shift_ns = entries[2].real_shift_ns = 1500 * S;
    CHECK_OK(compose_last(&last, 15, 35, entries, 3));
    CHECK_EQ(last.from_ns, 1015 * S);
    CHECK_EQ(last.to_ns, 1535 * S);
    CHECK_EQ(last.n_gaps, 1);
    CHECK(is_gap(&last.gaps[0], 1020, 1520, PD_GAP_ASLEEP));
    CHECK(!pd_coverage_is_whole(&last));
    CHECK_EQ(pd_coverage_recorded_ns(&last), 20 * S);
    CHECK_OK(compose(&since, 1010, 1525, entries, 3));
    CHECK_EQ(since.n_gaps, 1);
    CHECK(is_gap(&since.gaps[0], 1020, 1520, PD_GAP_ASLEEP));
    /* A window that begins when it wakes up. */
    CHECK_OK(compose_last(&edge, 20, 35, entries, 3));
    CHECK_EQ(edge.n_gaps, 0);
    CHECK_EQ(edge.from_ns, 1520 * S);
    /* Nobody knows whether it slept. */
    entries[0].slept_ns = UINT64_MAX;
    CHECK_OK(compose_last(&set, 15, 35, entries, 3));
    CHECK_EQ(set.n_gaps, 0);
    /* The clock was set, and the machine did not sleep. */
    entries[0].slept_ns = 507 * S;
    pd_coverage_done(&set);
    CHECK_OK(compose_last(&set, 15, 35, entries, 3));
    CHECK_EQ(set.n_gaps, 0);
}

TEST(the_previous_boot_and_the_time_between_boots_are_gaps) {
    Entry entries[] = {segment(1, 500, 600, PD_GAP_DOWN), segment(2, 10, 30, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    /* Its clock began elsewhere: it ended at 1000 by the time of day. */
    snprintf(entries[0].boot, sizeof(entries[0].boot), "another");
    entries[0].this_boot = false;
    entries[0].real_shift_ns = 400 * S;
    CHECK_OK(compose(&c, 990, 1030, entries, 2));
    CHECK_EQ(c.n_gaps, 2);
    CHECK(is_gap(&c.gaps[0], 990, 1000, PD_GAP_REBOOTED));
    CHECK(is_gap(&c.gaps[1], 1000, 1010, PD_GAP_DOWN));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 20 * S);
    /* A later boot says nothing of what follows the window's. */
    snprintf(entries[0].boot, sizeof(entries[0].boot), "this");
    snprintf(entries[1].boot, sizeof(entries[1].boot), "another");
    for (unsigned open = 0; open < 2; open++) {
        _cleanup_(pd_coverage_done) PdCoverage tail = {};

        entries[1].name.state = open ? SEGMENT_OPEN : SEGMENT_CLOSED;
        CHECK_OK(compose(&tail, 950, 1005, entries, 2));
        CHECK_EQ(tail.n_gaps, 1);
        CHECK(is_gap(&tail.gaps[0], 1000, 1005, PD_GAP_DOWN));
    }
}

TEST(a_segment_without_a_manifest_makes_no_window_complete) {
    Entry entries[] = {segment(1, 10, 20, PD_GAP_DELETED), segment(2, 20, 30, PD_GAP_DELETED),
                       segment(3, 30, 40, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    entries[1] = (Entry){.name = {.number = 2, .state = SEGMENT_CLOSED},
                         .is_known = true,
                         .this_boot = true,
                         .samples = 5,
                         .first_ns = 22 * S,
                         .last_ns = 28 * S,
                         .first_real_ns = 1022 * S,
                         .last_real_ns = 1028 * S,
                         .real_shift_ns = 1000 * S,
                         .boot = "this"};
    CHECK_OK(compose(&c, 1010, 1040, entries, 3));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 1020, 1030, PD_GAP_UNKNOWN));
    entries[1].unreadable = true;
    pd_coverage_done(&c);
    CHECK_OK(compose(&c, 1010, 1040, entries, 3));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 1020, 1030, PD_GAP_DAMAGED));
}

/* The beginning of a segment is known, and it cannot be read. */
TEST(a_segment_that_is_not_recovered_covers_no_time) {
    Entry entries[] = {segment(1, 10, 20, PD_GAP_DELETED), segment(2, 20, 30, PD_GAP_DOWN),
                       segment(3, 35, 40, PD_GAP_DOWN)};

    for (unsigned state = SEGMENT_OPEN; state <= SEGMENT_DAMAGED; state++) {
        _cleanup_(pd_coverage_done) PdCoverage c = {}, tail = {}, alone = {};

        entries[1].name.state = (SegmentState)state;
        CHECK_OK(compose(&c, 1010, 1040, entries, 3));
        CHECK_EQ(c.n_gaps, 1);
        CHECK(is_gap(&c.gaps[0], 1020, 1035, PD_GAP_DAMAGED));
        /* No later segment was begun. */
        CHECK_OK(compose(&tail, 1010, 1040, entries, 2));
        CHECK_EQ(tail.n_gaps, 1);
        CHECK(is_gap(&tail.gaps[0], 1020, 1040, PD_GAP_DAMAGED));
        /* It is the oldest. */
        CHECK_OK(compose(&alone, 1010, 1040, entries + 1, 2));
        CHECK_EQ(alone.n_gaps, 1);
        CHECK(is_gap(&alone.gaps[0], 1010, 1035, PD_GAP_UNKNOWN));
    }
}

TEST(the_segment_that_is_being_written_covers_its_time) {
    Entry entries[] = {segment(1, 10, 20, PD_GAP_DELETED), segment(2, 20, 30, PD_GAP_DOWN)};
    _cleanup_(pd_coverage_done) PdCoverage c = {};

    entries[1].name.state = SEGMENT_OPEN;
    entries[1].is_written = true;
    CHECK_OK(compose(&c, 1010, 1040, entries, 2));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 1030, 1040, PD_GAP_UNKNOWN));
}

/* A segment that covers a moment without a sample in it, and is followed by nothing yet. */
static int record_idly(Scene *s) {
    int r = begin_segment(&s->place, s->session);

    usleep(20000);
    if (r == 0)
        r = end_sweep(s->session, ++s->sweep);
    return r == 0 && !wait_written(s->session, s->sweep) ? -ETIMEDOUT : r;
}

TEST(a_window_in_which_nothing_ran_is_complete) {
    for (unsigned closed = 0; closed < 2; closed++) {
        _cleanup_(scene_done) Scene s;
        SnapshotRequest wanted = request("idle");
        SessionConfig config = store_session("default", LAYOUT_FILE, 3);
        uint64_t began_ns;

        CHECK_OK(scene_init(&s));
        CHECK_OK(store_session_new(s.place.store, &config, false, &s.session));
        began_ns = clock_anchor_now().monotonic_ns;
        CHECK_OK(record_idly(&s));
        if (closed)
            s.session = store_session_close(s.session);
        wanted.since_ns = began_ns + 5000000;
        wanted.until_ns = began_ns + 15000000;
        CHECK_OK(make(&s, &wanted));
        CHECK(!s.failed);
        CHECK_EQ(s.info.samples, 0);
        CHECK_EQ(count_read(s.path), 0);
        CHECK(s.info.coverage.is_known);
        CHECK_EQ(s.info.coverage.n_gaps, 0);
        CHECK_EQ(s.info.coverage.recorded_ns, 10000000);
        CHECK_EQ(s.info.n_partial, 0);
    }
}

TEST(idle_segments_hide_no_older_samples) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("all");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, (Way){LAYOUT_FILE, 3}, 1));
    for (unsigned i = 0; i < 5; i++)
        CHECK_OK(record_idly(&s));
    wanted.since_ns = s.first_ns[0];
    wanted.until_ns = clock_anchor_now().monotonic_ns;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 2 * SAMPLES);
    CHECK_EQ(s.info.coverage.n_gaps, 0);
}

TEST(a_window_between_two_samples_is_complete) {
    _cleanup_(scene_done) Scene s;
    SnapshotRequest wanted = request("between");

    CHECK_OK(scene_init(&s));
    CHECK_OK(scene_record(&s, (Way){LAYOUT_FILE, 3}, 1));
    usleep(20000);
    CHECK_OK(end_sweep(s.session, ++s.sweep));
    CHECK(wait_written(s.session, s.sweep));
    /* A thousand samples took a millisecond. */
    wanted.since_ns = s.first_ns[0] + 5000000;
    wanted.until_ns = s.first_ns[0] + 15000000;
    CHECK_OK(make(&s, &wanted));
    CHECK(!s.failed);
    CHECK_EQ(s.info.samples, 0);
    CHECK_EQ(s.info.coverage.n_gaps, 0);
    /* Time ahead is recorded nowhere. */
    wanted.name = "ahead";
    wanted.since_ns = s.first_ns[0] + 3600 * S;
    wanted.until_ns = s.first_ns[0] + 3601 * S;
    CHECK_OK(make(&s, &wanted));
    CHECK(s.failed);
    CHECK_EQ(s.failure.error, SNAPSHOT_UNAVAILABLE);
}

TEST_MAIN()
