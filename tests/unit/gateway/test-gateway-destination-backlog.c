/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backlog is read from profd again, in windows, beside the live intervals. */
#include "make-destination.h"
#include "test.h"
#include "util/log.h"

static char losses[4096]; /* the entries of gateway-profiles-lost, a line each */
static unsigned n_losses;

static int keep_losses(LogLevel level _unused_, int error _unused_, const char *message,
                       const LogField *fields, size_t n) {
    size_t used = strlen(losses);

    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].value, "gateway-profiles-lost") == 0) {
            (void)snprintf(losses + used, sizeof(losses) - used, "%s\n", message);
            n_losses++;
        }
    return 0;
}

static void begin_losses(void) {
    losses[0] = '\0';
    n_losses = 0;
    log_set_backend(keep_losses);
}

TEST(time_that_was_not_followed_is_read_as_windows) {
    Scene scene;

    scene_begin(&scene);
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(5);
    CHECK(each_arrived_once(&scene, 5));
    CHECK_EQ(world.windows, 3);
    scene_end(&scene);
}

TEST(backlog_is_sent_while_a_live_interval_waits_for_the_time_of_its_host) {
    Scene scene;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    offer(&scene, 4);
    run_until(5);
    CHECK(each_arrived_once(&scene, 5));
    for (unsigned i = 0; i < 5; i++)
        CHECK_EQ(world.arrived[i].since_ns, scene.begin_ns + i * INTERVAL);
    CHECK_EQ(world.windows, 3);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    scene_end(&scene);
}

TEST(live_interval_is_not_counted_as_too_old_while_it_is_sent) {
    Scene scene;

    scene_begin(&scene);
    scene.config.max_age_ns = 2 * INTERVAL;
    scene_restart(&scene);
    /* It has just ended. */
    offer(&scene, 99);
    run_until(1);
    CHECK_EQ(world.n_arrived, 1);
    CHECK_EQ(status_of(&scene).expired_ns, 0);
    scene_end(&scene);
}

/* profd deletes the oldest first: two windows as a whole, and half of the third one. */
TEST(time_that_profd_deleted_is_counted_and_logged_apart_from_what_was_not_recorded) {
    Scene scene;

    begin_losses();
    scene_begin(&scene);
    world.window_deleted_ns = INTERVAL;
    world.window_error = -ENODATA;
    offer(&scene, 0);
    offer(&scene, 3);
    run_until(2);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(status_of(&scene).missing_ns, 2 * INTERVAL);
    CHECK_EQ(status_of(&scene).deleted_ns, 2 * INTERVAL);
    CHECK_EQ(n_losses, 1);
    CHECK(strstr(losses, "Destination 'there' lost profiles: profd deleted 1 s, "));
    world.window_error = 0;
    world.window_deleted_ns = INTERVAL / 2;
    offer(&scene, 5);
    run_until(4);
    run_for(NS_PER_SECOND / 10);
    CHECK_EQ(status_of(&scene).deleted_ns, 5 * INTERVAL / 2);
    CHECK_EQ(status_of(&scene).missing_ns, 5 * INTERVAL / 2);
    /* At most once a minute. */
    CHECK_EQ(n_losses, 1);
    scene_restart(&scene);
    CHECK_EQ(status_of(&scene).deleted_ns, 5 * INTERVAL / 2);
    world.window_error = -ENODATA;
    world.window_deleted_ns = 0;
    offer(&scene, 8);
    run_until(5);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(status_of(&scene).missing_ns, 9 * INTERVAL / 2);
    CHECK_EQ(status_of(&scene).deleted_ns, 5 * INTERVAL / 2);
    CHECK_EQ(n_losses, 1);
    scene_end(&scene);
    log_set_backend(NULL);
}

/* As after an absence that was longer than the engine accepts. */
TEST(time_that_became_too_old_is_logged_once_with_its_length) {
    Scene scene;

    begin_losses();
    scene_begin(&scene);
    scene.config.max_age_ns = 60 * INTERVAL;
    scene_restart(&scene);
    offer(&scene, 0);
    offer(&scene, 90);
    run_until(2);
    run_for(NS_PER_SECOND / 2);
    CHECK(status_of(&scene).expired_ns >= 40 * INTERVAL);
    CHECK_EQ(n_losses, 1);
    CHECK(strstr(losses, "Destination 'there' lost profiles: "));
    CHECK(strstr(losses, " s became too old for the engine (MaxAgeSec=) before they were sent"));
    CHECK(!strstr(losses, "deleted"));
    scene_end(&scene);
    log_set_backend(NULL);
}

/* Of the intervals in which it began and ended the recorded part is read, unless that is too old.
 */
TEST(time_in_which_the_machine_slept_is_not_recorded_and_neither_too_old_nor_read) {
    Interval *woken;
    Scene scene;

    begin_losses();
    scene_begin(&scene);
    scene.config.max_age_ns = 20 * INTERVAL;
    scene_restart(&scene);
    offer(&scene, 0);
    run_until(1);
    woken = interval_of(scene.begin_ns + 99 * INTERVAL, scene.begin_ns + 100 * INTERVAL);
    woken->sleeps[0] = (IntervalSleep){.since_ns = scene.begin_ns + INTERVAL / 2,
                                       .until_ns = scene.begin_ns + 50 * INTERVAL};
    woken->sleeps[1] = (IntervalSleep){.since_ns = scene.begin_ns + 51 * INTERVAL,
                                       .until_ns = scene.begin_ns + 197 * INTERVAL / 2};
    woken->n_sleeps = 2;
    destination_offer(scene.destination, woken);
    interval_unref(woken);
    run_until(3);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    /* From second 50 to 51 it was awake. */
    CHECK_EQ(status_of(&scene).expired_ns, INTERVAL);
    CHECK_EQ(status_of(&scene).missing_ns, 49 * INTERVAL + 95 * INTERVAL / 2);
    CHECK_EQ(world.windows, 1);
    CHECK_EQ(world.n_arrived, 3);
    CHECK_EQ(n_losses, 1);
    CHECK(strstr(losses, "lost profiles: 1 s became too old"));
    scene_end(&scene);
    log_set_backend(NULL);
}

TEST(rate_limits_the_backlog_and_no_live_interval) {
    uint64_t begun_ns, live_ns;
    Scene scene;

    scene_begin(&scene);
    /* A body has about 45 bytes. */
    scene.config.max_bytes_per_sec = 100;
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(2);
    begun_ns = clock_monotonic_ns();
    run_until(3);
    offer(&scene, 5);
    run_until(4);
    live_ns = clock_monotonic_ns();
    CHECK_EQ(world.arrived[3].since_ns, scene.begin_ns + 5 * INTERVAL);
    CHECK_EQ(status_of(&scene).newest_ns, scene.begin_ns + 6 * INTERVAL);
    run_until(6);
    CHECK(each_arrived_once(&scene, 6));
    CHECK(live_ns < clock_monotonic_ns());
    CHECK(clock_monotonic_ns() - begun_ns > 6 * NS_PER_SECOND / 10);
    scene_end(&scene);
}

TEST(what_profd_does_not_have_is_missing_and_counted) {
    Scene scene;

    scene_begin(&scene);
    world.window_error = -ENODATA;
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(2);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(status_of(&scene).missing_ns, 3 * INTERVAL);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    CHECK_EQ(world.n_arrived, 2);
    scene_end(&scene);
}

TEST(while_profd_is_away_the_backlog_waits) {
    Scene scene;

    scene_begin(&scene);
    world.window_error = -ENOTCONN;
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(2);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(status_of(&scene).backlog_ns, 3 * INTERVAL);
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    world.window_error = 0;
    run_until(5);
    CHECK(each_arrived_once(&scene, 5));
    scene_end(&scene);
}

/* However long it lasts: it is told, and nothing is lost. */
TEST(profd_that_stays_away_is_the_last_error_and_costs_no_window) {
    Scene scene;

    scene_begin(&scene);
    scene.window_pause_ns = NS_PER_SECOND / 50;
    scene_restart(&scene);
    world.window_error = -ENOTCONN;
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(2);
    run_for(NS_PER_SECOND);
    CHECK(world.windows > 10);
    CHECK_EQ(status_of(&scene).backlog_ns, 3 * INTERVAL);
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    CHECK(strstr(status_of(&scene).last_error, "profd is away, or refuses"));
    CHECK_EQ(status_of(&scene).error_status, SEND_STATUS_SOURCE);
    world.window_error = 0;
    run_until(5);
    CHECK(each_arrived_once(&scene, 5));
    scene_end(&scene);
}

TEST(window_that_profd_breaks_off_every_time_is_missing_after_a_bounded_number_of_attempts) {
    Scene scene;

    scene_begin(&scene);
    scene.window_pause_ns = NS_PER_SECOND / 50;
    scene_restart(&scene);
    world.window_error = -EPIPE;
    offer(&scene, 0);
    offer(&scene, 2);
    run_until(2);
    for (unsigned i = 0; i < 100 && world.windows < 2; i++)
        run_for(NS_PER_SECOND / 100);
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    CHECK(strstr(status_of(&scene).last_error, "breaks off"));
    CHECK_EQ(status_of(&scene).error_status, SEND_STATUS_SOURCE);
    for (unsigned i = 0; i < 100 && status_of(&scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
    CHECK_EQ(world.windows, 5);
    CHECK_EQ(status_of(&scene).missing_ns, INTERVAL);
    CHECK(strstr(status_of(&scene).last_error, "cannot be read"));
    CHECK_EQ(status_of(&scene).error_status, SEND_STATUS_LOST);
    scene_end(&scene);
}

/* Only the interval that breaks is lost of a merged window. */
/* Intervals begin a little later then, so that no engine takes one for another. */
static void offer_again(Scene *scene, unsigned n) {
    uint64_t since_ns = scene->begin_ns + n * INTERVAL + 10 * NS_PER_MS;
    _cleanup_(interval_unrefp) Interval *interval = interval_of(since_ns, since_ns + INTERVAL);

    destination_offer(scene->destination, interval);
}

static void run_while_behind(const Scene *scene) {
    for (unsigned i = 0; i < 100 && status_of(scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
}

/* profd gives no window until the clock was set back and the engine answers again. */
TEST(times_that_come_again_while_an_engine_is_away_are_read_as_windows) {
    static const TransportAnswer answers[] = {{.status = 503}, {.status = 503}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    scene.window_pause_ns = NS_PER_SECOND / 5;
    scene_restart(&scene);
    world.answers = answers;
    world.n_answers = 3;
    world.window_error = -ENOTCONN;
    for (unsigned i = 0; i < 3; i++)
        offer(&scene, i);
    run_for(2 * NS_PER_SECOND);
    offer_again(&scene, 1);
    run_for(NS_PER_SECOND);
    offer_again(&scene, 2);
    run_for(NS_PER_SECOND);
    CHECK_EQ(world.n_arrived, 0);
    CHECK_EQ(status_of(&scene).backlog_ns, 3 * INTERVAL + 10 * NS_PER_MS);
    world.window_error = 0;
    run_while_behind(&scene);
    CHECK(each_arrived_once(&scene, 3));
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    scene_end(&scene);
}

/* A window then has the samples of both times, also of what was sent before. */
TEST(interval_that_was_sent_in_part_is_sent_anew_when_its_time_comes_again) {
    static const TransportAnswer answers[] = {{.status = 200}, {.status = 503}, {.status = 200}};
    unsigned first = 0;
    Scene scene;

    scene_begin(&scene);
    scene.window_pause_ns = NS_PER_SECOND / 5;
    scene_restart(&scene);
    world.n_series = 3;
    world.per_request = 1;
    world.answers = answers;
    world.n_answers = 3;
    world.window_error = -ENOTCONN;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    CHECK_EQ(world.n_arrived, 1);
    offer(&scene, 0);
    world.window_error = 0;
    run_while_behind(&scene);
    for (size_t i = 0; i < world.n_arrived; i++)
        first += world.arrived[i].since_ns == scene.begin_ns && world.arrived[i].first == 0;
    /* A machine that stands still may make it three times. */
    CHECK(first >= 2);
    CHECK_EQ(status_of(&scene).repeated_requests, first - 1);
    scene_end(&scene);
}

TEST(interval_that_fails_half_way_after_its_time_came_again_is_sent_anew) {
    static const TransportAnswer answers[] = {{.status = 200}, {.status = 503}, {.status = 200}};
    unsigned first = 0;
    Scene scene;

    scene_begin(&scene);
    world.n_series = 3;
    world.per_request = 1;
    world.answers = answers;
    world.n_answers = 3;
    offer(&scene, 0);
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    run_while_behind(&scene);
    for (size_t i = 0; i < world.n_arrived; i++)
        first += world.arrived[i].first == 0;
    CHECK_EQ(first, 2);
    CHECK_EQ(world.n_arrived, 4);
    CHECK_EQ(status_of(&scene).repeated_requests, 1);
    scene_end(&scene);
}

TEST(interval_whose_time_comes_again_while_it_is_sent_is_read_as_a_window_too) {
    static const TransportAnswer answers[] = {{.status = 503}, {.status = 200}};

    for (size_t n = 1; n <= 2; n++) {
        Scene scene;

        scene_begin(&scene);
        world.answers = answers + 2 - n;
        world.n_answers = n;
        offer(&scene, 0);
        offer(&scene, 0);
        run_for(NS_PER_SECOND);
        run_while_behind(&scene);
        CHECK(world.windows >= 1);
        /* Accepted or refused, it is in a window, and nothing else is. */
        CHECK_EQ(arrivals(&scene, 0), 3 - n);
        CHECK_EQ(status_of(&scene).repeated_requests, 2 - n);
        CHECK_EQ(status_of(&scene).backlog_ns, 0);
        scene_end(&scene);
    }
}

TEST(merged_window_that_breaks_off_is_read_again_by_intervals) {
    static const TransportAnswer answers[] = {{.status = 429}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    scene.window_pause_ns = NS_PER_SECOND / 50;
    scene_restart(&scene);
    world.answers = answers;
    world.n_answers = 2;
    world.longest_window_ns = INTERVAL;
    world.long_window_error = -EPIPE;
    offer(&scene, 0);
    offer(&scene, 5);
    for (unsigned i = 0; i < 100 && status_of(&scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
    CHECK(each_arrived_once(&scene, 6));
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    scene_end(&scene);
}

TEST(window_that_profd_keeps_to_itself_is_missing_and_holds_up_nothing) {
    Scene scene;

    scene_begin(&scene);
    world.window_error = -EACCES;
    offer(&scene, 0);
    offer(&scene, 4);
    run_until(2);
    run_for(NS_PER_SECOND / 2);
    CHECK_EQ(world.windows, 3);
    CHECK_EQ(status_of(&scene).missing_ns, 3 * INTERVAL);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    CHECK(strstr(status_of(&scene).last_error, "stacks of user memory"));
    CHECK_EQ(status_of(&scene).error_status, SEND_STATUS_LOST);
    scene_end(&scene);
}

/* One part of a merged window is enough to refuse it as a whole. */
TEST(merged_window_that_is_refused_is_read_again_by_intervals) {
    static const TransportAnswer answers[] = {{.status = 429}, {.status = 200}};
    Scene scene;

    scene_begin(&scene);
    world.answers = answers;
    world.n_answers = 2;
    world.longest_window_ns = INTERVAL;
    offer(&scene, 0);
    offer(&scene, 5);
    for (unsigned i = 0; i < 100 && status_of(&scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
    CHECK(each_arrived_once(&scene, 6));
    CHECK_EQ(status_of(&scene).missing_ns, 0);
    scene_end(&scene);
}

/* An engine is away for longer than there are ranges, by each of which half would be one of its
 * own. */
TEST(share_leaves_an_absence_whole) {
    static const TransportAnswer away[] = {{.status = 503}};
    enum { OFFERS = 5000 };
    DestinationStatus status;
    Scene scene;

    scene_begin(&scene);
    scene.begin_ns -= OFFERS * INTERVAL;
    scene.config.share_percent = 50;
    scene_restart(&scene);
    world.answers = away;
    world.n_answers = 1;
    for (unsigned i = 0; i < OFFERS; i++)
        offer(&scene, i);
    run_for(NS_PER_SECOND / 10);
    status = status_of(&scene);
    CHECK_EQ(status.ranges, 1);
    CHECK_EQ(status.expired_ns, 0);
    CHECK_EQ(status.backlog_ns / INTERVAL + status.thinned_intervals, OFFERS);
    /* The engine is back: what is chosen arrives, and each of the others counts once. */
    world.n_answers = 0;
    scene_restart(&scene);
    offer(&scene, OFFERS);
    for (unsigned i = 0; i < 300 && status_of(&scene).backlog_ns > 0; i++)
        run_for(NS_PER_SECOND / 10);
    status = status_of(&scene);
    CHECK_EQ(status.backlog_ns, 0);
    CHECK_EQ(status.sent_intervals, world.n_arrived);
    CHECK_EQ(status.sent_intervals + status.thinned_intervals, OFFERS + 1);
    CHECK(status.sent_intervals > 2300 && status.sent_intervals < 2700);
    CHECK_EQ(status.expired_ns, 0);
    scene_end(&scene);
}

TEST_MAIN()
