/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "s3/s3-item.h"
#include "s3/s3-key.h"
#include "test.h"
#include "util/clock.h"
#include "util/macro.h"

/* Keys of objects, and which window of time an object holds. */

#define MOMENT (UINT64_C(1795557300) * NS_PER_SECOND) /* 2026-11-24 21:55:00 UTC */

static int make(const char *template, const char *host, const char *name, char ret[S3_KEY_MAX]) {
    return s3_key_make(template, &(S3KeyFacts){.host = host, .name = name, .time_ns = MOMENT}, ret);
}

static const char *problem_of(const char *template, bool of_snapshots) {
    const char *problem = NULL;

    return s3_key_check(template, of_snapshots, &problem) == -EINVAL && problem ? problem : "none";
}

TEST(default_template_names_host_day_session_and_time) {
    char key[S3_KEY_MAX];

    CHECK_STREQ(problem_of(S3_KEY_DEFAULT, false), "none");
    CHECK_STREQ(problem_of(S3_KEY_DEFAULT, true), "none");
    CHECK_OK(make(S3_KEY_DEFAULT, "web-1.example", "default", key));
    CHECK_STREQ(key, "web-1.example/2026/11/24/default-20261124T215500Z.perf.data");
}

TEST(each_code_has_its_part) {
    char key[S3_KEY_MAX];

    CHECK_OK(make("a/%H.%N/%Y-%m-%d_%h%M%S/%T", "h", "s", key));
    CHECK_STREQ(key, "a/h.s/2026-11-24_215500/20261124T215500Z");
}

TEST(template_must_tell_objects_apart) {
    CHECK(strcmp(problem_of("%H/%Y/%m/%d", false), "none") != 0);
    CHECK(strcmp(problem_of("%H/%Y%m%d%h%M", false), "none") != 0);
    CHECK_STREQ(problem_of("%H/%Y%m%d%h%M%S", false), "none");
    CHECK(strcmp(problem_of("%H/%T", true), "none") != 0);
    CHECK_STREQ(problem_of("%T", false), "none");
}

TEST(template_with_a_wrong_character_or_code_is_refused) {
    static const char *const wrong[] = {"%T%",   "%T%q",  "%T%%",   "%T a", "%T+",    "/%T", "%T/",
                                        "a//%T", "../%T", "a/./%T", "",     "%T?x=1", "%T\n"};

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        CHECK(strcmp(problem_of(wrong[i], false), "none") != 0);
}

TEST(names_from_outside_become_characters_of_a_key) {
    char key[S3_KEY_MAX];

    CHECK_OK(make("%H/%N/%T", "..", "a b/..\xff?", key));
    CHECK_STREQ(key, "_./a_b_..__/20261124T215500Z");
    CHECK_OK(make("%H/%T", "", "", key));
    CHECK_STREQ(key, "_/20261124T215500Z");
}

TEST(key_is_never_longer_than_a_store_takes) {
    char key[S3_KEY_MAX] = "unchanged", host[600], template[16] = "%H%H%T";

    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    CHECK_EQ(make(template, host, "s", key), -ENAMETOOLONG);
    CHECK_STREQ(key, "unchanged");
    host[504] = '\0';
    CHECK_OK(make(template, host, "s", key));
    CHECK_EQ(strlen(key), S3_KEY_MAX - 1);
    host[504] = 'h';
    host[505] = '\0';
    CHECK_EQ(make(template, host, "s", key), -ENAMETOOLONG);
}

TEST(windows_are_multiples_of_the_interval_without_gap_or_overlap) {
    const uint64_t interval = 300 * NS_PER_SECOND;
    uint64_t cursor = s3_schedule_first(MOMENT + 123, interval);

    CHECK_EQ(cursor, MOMENT);
    for (int i = 0; i < 5; i++) {
        S3Slot slot = s3_schedule_next(cursor, interval, 7);

        CHECK_EQ(slot.since_ns, cursor);
        CHECK_EQ(slot.until_ns, cursor + interval);
        CHECK(slot.due_ns >= slot.until_ns + 7);
        cursor = slot.until_ns;
    }
}

TEST(changed_interval_makes_one_shorter_window) {
    S3Slot slot = s3_schedule_next(MOMENT + 60 * NS_PER_SECOND, 300 * NS_PER_SECOND, 0);

    CHECK_EQ(slot.since_ns, MOMENT + 60 * NS_PER_SECOND);
    CHECK_EQ(slot.until_ns, MOMENT + 300 * NS_PER_SECOND);
}

TEST(newest_window_comes_first_and_then_the_oldest) {
    const uint64_t interval = 300 * NS_PER_SECOND;
    uint64_t cursor = MOMENT + 5 * interval;
    RangeList unsent = {};
    S3Slot slot;

    (void)range_list_add(&unsent, (Range){MOMENT + 60 * NS_PER_SECOND, cursor});
    slot = s3_schedule_pick(&unsent, cursor, interval, 0);
    CHECK_EQ(slot.since_ns, cursor - interval);
    CHECK_EQ(slot.until_ns, cursor);
    (void)range_list_remove(&unsent, (Range){slot.since_ns, slot.until_ns});
    slot = s3_schedule_pick(&unsent, cursor, interval, 0);
    CHECK_EQ(slot.since_ns, MOMENT + 60 * NS_PER_SECOND);
    CHECK_EQ(slot.until_ns, MOMENT + interval);
    (void)range_list_remove(&unsent, (Range){slot.since_ns, slot.until_ns});
    slot = s3_schedule_pick(&unsent, cursor, interval, 0);
    CHECK_EQ(slot.since_ns, MOMENT + interval);
    CHECK_EQ(slot.until_ns, MOMENT + 2 * interval);
    /* The next window is due. */
    (void)range_list_add(&unsent, (Range){cursor, cursor + interval});
    CHECK_EQ(s3_schedule_pick(&unsent, cursor + interval, interval, 0).since_ns, cursor);
}

TEST(window_that_cannot_be_got_comes_behind_the_others) {
    const uint64_t interval = 300 * NS_PER_SECOND, cursor = MOMENT + 9 * interval;
    RangeList unsent = {};

    (void)range_list_add(&unsent, (Range){MOMENT, MOMENT + 2 * interval});
    (void)range_list_add(&unsent, (Range){MOMENT + 4 * interval, MOMENT + 5 * interval});
    CHECK_EQ(s3_schedule_pick(&unsent, cursor, interval, MOMENT + interval).since_ns,
             MOMENT + interval);
    CHECK_EQ(s3_schedule_pick(&unsent, cursor, interval, MOMENT + 2 * interval).since_ns,
             MOMENT + 4 * interval);
    CHECK_EQ(s3_schedule_pick(&unsent, cursor, interval, MOMENT + 5 * interval).since_ns, MOMENT);
    /* The newest still goes first. */
    (void)range_list_add(&unsent, (Range){cursor - interval, cursor});
    CHECK_EQ(s3_schedule_pick(&unsent, cursor, interval, MOMENT + interval).until_ns, cursor);
}

TEST(window_is_due_when_its_samples_are_there_and_at_the_time_of_the_host) {
    const uint64_t interval = 300 * NS_PER_SECOND;
    uint64_t due = s3_schedule_next(MOMENT, interval, 7 * NS_PER_SECOND).due_ns;

    CHECK_EQ(s3_schedule_due(due - 1, interval, 7 * NS_PER_SECOND), MOMENT);
    CHECK_EQ(s3_schedule_due(due, interval, 7 * NS_PER_SECOND), MOMENT + interval);
    CHECK_EQ(s3_schedule_due(5, interval, 7), 0);
}

#define DAY (UINT64_C(24) * 3600 * NS_PER_SECOND)

TEST(cursor_comes_back_when_a_clock_that_was_ahead_is_set_right) {
    const SendConfig config = {.object_interval_ns = 300 * NS_PER_SECOND};
    const uint64_t now = MOMENT + 10 * NS_PER_SECOND, aheads[] = {DAY, 4000 * DAY};

    for (size_t i = 0; i < ARRAY_SIZE(aheads); i++) {
        S3State state = {.until_ns = MOMENT - 2 * config.object_interval_ns};

        (void)s3_schedule_take(&state, &config, 0, now + aheads[i]);
        CHECK_EQ(state.until_ns, MOMENT + aheads[i]);
        CHECK(s3_schedule_take(&state, &config, 0, now));
        CHECK_EQ(state.until_ns, MOMENT);
        /* By 4000 days it has reached too far back for the windows before it. */
        CHECK_EQ(range_list_total(&state.unsent), i > 0 ? 0 : 2 * config.object_interval_ns);
        (void)s3_schedule_take(&state, &config, 0, now + config.object_interval_ns);
        CHECK_EQ(state.until_ns, MOMENT + config.object_interval_ns);
        CHECK(range_list_has(&state.unsent, (Range){MOMENT, state.until_ns}));
    }
}

TEST(state_of_a_clock_that_was_ahead_is_recognized_at_the_next_start) {
    const SendConfig config = {.object_interval_ns = 300 * NS_PER_SECOND};
    S3State state = {.until_ns = MOMENT + DAY,
                     .unsent = {.items = {{MOMENT - 1, MOMENT + DAY}}, .n = 1}};

    CHECK(s3_schedule_take(&state, &config, 0, MOMENT + 10 * NS_PER_SECOND));
    CHECK_EQ(state.until_ns, MOMENT);
    CHECK_EQ(range_list_total(&state.unsent), 1);
}

TEST(clock_that_is_behind_until_it_is_set_uploads_nothing_again) {
    const SendConfig config = {.object_interval_ns = 300 * NS_PER_SECOND};
    S3State state = {.until_ns = MOMENT};

    CHECK(!s3_schedule_take(&state, &config, 0, DAY));
    CHECK_EQ(state.until_ns, MOMENT);
    (void)s3_schedule_take(&state, &config, 0, MOMENT + 310 * NS_PER_SECOND);
    CHECK_EQ(range_list_total(&state.unsent), config.object_interval_ns);
}

TEST(window_that_ended_is_not_taken_twice_for_a_small_step_of_the_clock) {
    const SendConfig config = {.object_interval_ns = 300 * NS_PER_SECOND};
    S3State state = {.until_ns = MOMENT};

    CHECK(!s3_schedule_take(&state, &config, 0, MOMENT + NS_PER_SECOND / 2));
    CHECK_EQ(state.until_ns, MOMENT);
}

TEST(clock_that_jumps_by_years_asks_for_a_month) {
    const SendConfig config = {.object_interval_ns = 300 * NS_PER_SECOND};
    S3State state = {.until_ns = DAY};

    CHECK(s3_schedule_take(&state, &config, 0, MOMENT + 10 * NS_PER_SECOND));
    CHECK_EQ(state.until_ns, MOMENT);
    CHECK_EQ(range_list_total(&state.unsent), 31 * DAY);
    CHECK_EQ(state.counters.expired_ns, MOMENT - DAY - 31 * DAY);
}

TEST(hosts_upload_at_times_of_their_own) {
    const uint64_t interval = 300 * NS_PER_SECOND;
    uint64_t a = s3_schedule_spread("web-1", "archive", interval);

    CHECK(a < 60 * NS_PER_SECOND);
    CHECK_EQ(a, s3_schedule_spread("web-1", "archive", interval));
    CHECK(a != s3_schedule_spread("web-2", "archive", interval));
    CHECK(a != s3_schedule_spread("web-1", "other", interval));
    CHECK(s3_schedule_spread("web-1", "archive", 4) < 1);
}

TEST(files_of_a_folder_lie_below_one_key) {
    S3Item item = {.object.fd = -1, .is_snapshot = true, .file = 1};

    strcpy(item.snapshot.name, "incident");
    item.snapshot.created_us = MOMENT / NS_PER_US;
    item.snapshot.is_folder = true;
    strcpy(item.snapshot.files[1], "data.0");
    CHECK_OK(s3_item_name(&item, "%N-%T", "web-1", "default"));
    CHECK_STREQ(item.key, "incident-20261124T215500Z/data.0");
    s3_item_done(&item);
}

TEST_MAIN()
