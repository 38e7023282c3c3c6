/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* After an answer of its engine a destination waits, splits, gives up or goes on. */
#include "make-destination.h"
#include "test.h"

TEST(engine_that_was_away_gets_everything_once_and_live_first) {
    static const TransportAnswer answers[] = {{.error = -ECONNREFUSED, .problem = "refused"},
                                              {.error = -ECONNREFUSED, .problem = "refused"},
                                              {.status = 200}};
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    world.answers = answers;
    world.n_answers = 3;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    for (unsigned i = 1; i < 6; i++)
        offer(&scene, i);
    run_until(6);
    status = status_of(&scene);
    CHECK(each_arrived_once(&scene, 6));
    CHECK_EQ(status.backlog_ns, 0);
    CHECK_EQ(status.repeated_requests, 0);
    CHECK(status.retries >= 1 && !status.is_waiting);
    CHECK(strstr(status.last_error, "does not answer"));
    scene_end(&scene);
}

TEST(waiting_destination_keeps_ranges_and_no_intervals) {
    static const TransportAnswer answers[] = {
        {.status = 503, .retry_after_ns = 3600 * NS_PER_SECOND}};
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    world.answers = answers;
    world.n_answers = 1;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    for (unsigned i = 1; i < 50; i++)
        offer(&scene, i);
    run_for(NS_PER_SECOND / 10);
    status = status_of(&scene);
    CHECK_EQ(world.asked, 1);
    CHECK_EQ(status.ranges, 1);
    CHECK_EQ(status.backlog_ns, 50 * INTERVAL);
    CHECK(status.is_waiting);
    CHECK(status.retry_ns > clock_ns(CLOCK_REALTIME) + 3500 * NS_PER_SECOND);
    scene_end(&scene);
}

TEST(interval_of_several_requests_goes_on_where_it_failed) {
    static const TransportAnswer answers[] = {{.status = 200}, {.status = 503}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    world.n_series = 5;
    world.per_request = 2;
    world.answers = answers;
    world.n_answers = 3;
    offer(&scene, 0);
    run_until(3);
    CHECK_EQ(world.n_arrived, 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(world.arrived[i].since_ns, scene.begin_ns);
        CHECK_EQ(world.arrived[i].first, i * 2);
    }
    CHECK_EQ(status_of(&scene).sent_samples, 50);
    CHECK_EQ(status_of(&scene).sent_intervals, 1);
    scene_end(&scene);
}

TEST(samples_that_were_left_out_count_once_however_often_the_interval_is_tried) {
    static const TransportAnswer answers[] = {
        {.status = 200}, {.status = 503}, {.status = 413}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    scene.config.max_body_bytes = 64 * 1024;
    scene_restart(&scene);
    world.n_series = 4;
    world.per_request = 2;
    world.dropped = 7;
    world.other = 3;
    world.folded = 5;
    world.answers = answers;
    world.n_answers = 4;
    offer(&scene, 0);
    run_until(1);
    CHECK_EQ(status_of(&scene).dropped_samples, 0);
    run_until(3);
    run_for(NS_PER_SECOND / 10);
    /* Two series, and one each after the engine had refused the size. */
    CHECK_EQ(world.asked, 5);
    CHECK_EQ(status_of(&scene).sent_samples, 40);
    CHECK_EQ(status_of(&scene).dropped_samples, 7);
    CHECK_EQ(status_of(&scene).other_samples, 3 + 3 * 5);
    scene_end(&scene);
}

TEST(requests_that_come_again_after_rules_changed_are_counted) {
    static const TransportAnswer answers[] = {
        {.status = 200}, {.status = 503, .retry_after_ns = 3600 * NS_PER_SECOND}};
    Scene scene;

    scene_begin(&scene);
    world.n_series = 6;
    world.per_request = 2;
    strcpy(world.site, "old");
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    CHECK_EQ(world.n_arrived, 1);
    world.n_answers = 0;
    strcpy(world.site, "new");
    scene_restart(&scene);
    offer(&scene, 1);
    run_until(1 + 3 + 3);
    run_for(NS_PER_SECOND / 10);
    CHECK_EQ(status_of(&scene).repeated_requests, 1);
    scene_end(&scene);
}

TEST(refused_interval_is_lost_counted_and_holds_up_nothing) {
    static const TransportAnswer answers[] = {{.status = 400, .body = "bad label"},
                                              {.status = 200}};
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    offer(&scene, 1);
    run_until(1);
    status = status_of(&scene);
    CHECK_EQ(status.refused_intervals, 1);
    CHECK_EQ(status.refused_samples, 10);
    CHECK_EQ(status.sent_intervals, 1);
    CHECK_EQ(status.backlog_ns, 0);
    CHECK(strstr(status.last_error, "HTTP 400") && strstr(status.last_error, "bad label"));
    scene_end(&scene);
}

/* A request of four series of ten samples, to which an answer of 200 has this message. */
static void answer_with(const char *message, size_t size, DestinationStatus *ret) {
    const TransportAnswer answer = {.status = 200, .data = (const uint8_t *)message, .size = size};
    Scene scene;

    scene_begin(&scene);
    world.n_series = 4;
    world.answers = &answer;
    world.n_answers = 1;
    offer(&scene, 0);
    run_until(1);
    run_for(NS_PER_SECOND / 10);
    *ret = status_of(&scene);
    CHECK_EQ(world.asked, 1);
    CHECK_EQ(ret->backlog_ns, 0);
    scene_end(&scene);
}

TEST(profiles_that_an_accepted_request_lost_count_as_refused) {
    DestinationStatus status;

    answer_with("\x0a\x07\x08\x04\x12\x03"
                "old",
                9, &status);

    CHECK_EQ(status.refused_samples, 40);
    CHECK_EQ(status.refused_intervals, 1);
    CHECK_EQ(status.sent_samples, 0);
    CHECK_EQ(status.sent_intervals, 0);
    CHECK_EQ(status.error_status, 200);
    CHECK_EQ(status.retries, 0);
    CHECK(strstr(status.last_error, "not 4 of its 4 profiles: old"));
    answer_with("\x0a\x07\x08\x7f\x12\x03"
                "old",
                9, &status);
    CHECK_EQ(status.refused_samples, 40);
    answer_with("\x0a\x07\x08\x01\x12\x03"
                "old",
                9, &status);
    CHECK_EQ(status.refused_samples, 10);
    CHECK_EQ(status.sent_samples, 30);
    CHECK_EQ(status.sent_intervals, 1);
    CHECK_EQ(status.refused_intervals, 1);
    CHECK(strstr(status.last_error, "not 1 of its 4 profiles: old"));
}

TEST(warning_and_broken_message_of_an_accepted_request_refuse_nothing) {
    static const struct {
        const char *message;
        size_t size;
    } rows[] = {
        {"", 0},
        {"\x0a\x00", 2},
        {"\x0a\x05\x12\x03"
         "old",
         7},
        {"\x0a\x07\x08\x04\x12\x03"
         "ol",
         8},
        {"\x0a\x07\x08\x04\x12\x04"
         "old",
         9},
        {"\x0a\x02\x08\xff", 4},
        {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13},
        {"{\"partialSuccess\":{}}", 21},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        DestinationStatus status;

        answer_with(rows[i].message, rows[i].size, &status);

        CHECK_EQ(status.refused_samples, 0);
        CHECK_EQ(status.sent_samples, 40);
        CHECK_STREQ(status.last_error, "");
    }
}

TEST(request_that_is_too_large_is_split_and_later_ones_too) {
    static const TransportAnswer answers[] = {{.status = 413}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    scene.config.max_body_bytes = 64 * 1024;
    scene_restart(&scene);
    world.n_series = 3;
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    run_until(3);
    CHECK_EQ(world.n_arrived, 3);
    CHECK(world.max_bytes < 64 * 1024);
    CHECK_EQ(status_of(&scene).refused_intervals, 0);
    CHECK_EQ(status_of(&scene).sent_samples, 30);
    scene_end(&scene);
}

TEST(single_series_that_is_too_large_is_made_smaller) {
    static const TransportAnswer answers[] = {{.status = 400, .body = "request body too large"},
                                              {.status = 200}};
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    scene.config.max_body_bytes = 64 * 1024;
    scene_restart(&scene);
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    run_until(1);
    CHECK_EQ(world.n_arrived, 1);
    CHECK(world.max_bytes < 64 * 1024);
    status = status_of(&scene);
    CHECK_EQ(status.refused_samples, 0);
    CHECK_EQ(status.sent_samples, 10);
    CHECK_EQ(status.last_http_status, 200);
    CHECK_EQ(status.error_status, 413);
    CHECK(strstr(status.last_error, "bytes is too large (HTTP 400): request body too large"));
    scene_end(&scene);
}

TEST(series_that_cannot_be_made_smaller_is_lost_and_holds_up_nothing) {
    static const TransportAnswer answers[] = {{.status = 413}, {.status = 413}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    world.is_solid = true;
    world.answers = answers;
    world.n_answers = 3;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    CHECK_EQ(world.asked, 2);
    offer(&scene, 1);
    run_until(1);
    CHECK_EQ(status_of(&scene).refused_samples, 10);
    CHECK_EQ(status_of(&scene).sent_samples, 10);
    scene_end(&scene);
}

TEST(small_request_that_is_too_large_is_lost_and_counted) {
    static const TransportAnswer answers[] = {{.status = 413}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    offer(&scene, 1);
    run_until(1);
    CHECK_EQ(status_of(&scene).refused_samples, 10);
    scene_end(&scene);
}

TEST(engine_that_asks_for_fewer_requests_gets_merged_windows) {
    static const TransportAnswer answers[] = {{.status = 429}, {.status = 429}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    world.answers = answers;
    world.n_answers = 3;
    world.asked = 0;
    offer(&scene, 8);
    for (unsigned i = 0; i < 600 && status_of(&scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
    CHECK(each_arrived_once(&scene, 9));
    /* Eight intervals, four at a time at last. */
    CHECK(world.n_arrived <= 4);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    scene_end(&scene);
}

TEST_MAIN()
