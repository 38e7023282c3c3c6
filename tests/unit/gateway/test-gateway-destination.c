/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A destination sends live intervals, and continues after a restart where its state ends. */
#include <fcntl.h>
#include <sys/wait.h>

#include "make-destination.h"
#include "test.h"

TEST(live_interval_is_sent_and_leaves_the_state) {
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    offer(&scene, 0);
    CHECK_EQ(status_of(&scene).backlog_ns, INTERVAL);
    run_until(1);
    status = status_of(&scene);
    CHECK_EQ(world.windows, 0);
    CHECK(each_arrived_once(&scene, 1));
    CHECK_EQ(status.backlog_ns, 0);
    CHECK_EQ(status.sent_intervals, 1);
    CHECK_EQ(status.sent_samples, 10);
    CHECK_EQ(status.live_until_ns, scene.begin_ns + INTERVAL);
    CHECK_EQ(status.newest_ns, scene.begin_ns + INTERVAL);
    CHECK(status.last_success_ns > scene.begin_ns);
    scene_end(&scene);
}

TEST(restart_goes_on_at_the_position) {
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    scene_restart(&scene);
    CHECK_EQ(status_of(&scene).sent_intervals, 1);
    offer(&scene, 3);
    run_until(4);
    status = status_of(&scene);
    CHECK(each_arrived_once(&scene, 4));
    CHECK_EQ(status.sent_intervals, 4);
    CHECK_EQ(status.repeated_requests, 0);
    scene_end(&scene);
}

/* Opening a FIFO for writing waits for a reader, as a disk or a file server that hangs. */
static void hang(const Scene *scene, const char *name, char *ret_path, size_t size) {
    snprintf(ret_path, size, "%s/%s", scene->folder, name);
    if (mkfifo(ret_path, 0600) < 0)
        abort();
}

/* What was written to it, as soon as the thread goes on and has closed it. */
static ssize_t wake(const char *path, char *to, size_t size) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n, total = 0;

    while ((n = read(fd, to + total, size - (size_t)total)) > 0)
        total += n;
    return total;
}

static uint64_t seconds_to_end(Scene *scene) {
    uint64_t begun_ns = clock_monotonic_ns();

    scene->destination = destination_free(scene->destination);
    return (clock_monotonic_ns() - begun_ns) / NS_PER_SECOND;
}

/* In a process of its own, which ends at once and with what hangs in it. */
static bool succeeds_in_a_child(bool (*does)(void)) {
    pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        (void)alarm(60);
        _exit(does() ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The thread uses nothing of the destination any more when it goes on. */
static bool leaves_a_state(void) {
    char path[128], text[4096] = "";
    bool is_left;
    Scene scene;

    scene_begin(&scene);
    hang(&scene, "there.json.new", path, sizeof(path));
    offer(&scene, 0);
    run_until(1);
    is_left = seconds_to_end(&scene) < 20;
    memset(&scene.config, 'x', sizeof(scene.config));
    is_left = is_left && wake(path, text, sizeof(text) - 1) > 0;
    scene_end(&scene);
    return is_left && strstr(text, "liveNs") && strstr(text, "}}");
}

static bool leaves_a_folder(void) {
    char path[128], name[64], text[4096];
    DestinationStatus status;
    time_t begin_s;
    struct tm parts;
    bool is_left;
    Scene scene;

    scene_begin(&scene);
    strcpy(scene.config.type, "file");
    strcpy(scene.config.url, scene.folder);
    scene_restart(&scene);
    begin_s = (time_t)(scene.begin_ns / NS_PER_SECOND);
    (void)strftime(name, sizeof(name), ".there-%Y%m%dT%H%M%SZ.pb.gz", gmtime_r(&begin_s, &parts));
    hang(&scene, name, path, sizeof(path));
    offer(&scene, 0);
    run_for(NS_PER_SECOND / 2);
    is_left = seconds_to_end(&scene) < 20;
    strcpy(scene.config.url, "/nowhere");
    strcpy(scene.config.name, "nobody");
    is_left = is_left && wake(path, text, sizeof(text)) > 0;
    strcpy(scene.config.url, scene.folder);
    strcpy(scene.config.name, "there");
    scene.destination = started(&scene);
    status = status_of(&scene);
    scene_end(&scene);
    /* The interval comes again. */
    return is_left && status.sent_intervals == 0 && status.backlog_ns == INTERVAL;
}

TEST(end_waits_a_few_seconds_for_a_state_that_cannot_be_written) {
    CHECK(succeeds_in_a_child(leaves_a_state));
}

TEST(end_waits_a_few_seconds_for_a_folder_that_hangs_and_its_interval_comes_again) {
    CHECK(succeeds_in_a_child(leaves_a_folder));
}

TEST(request_in_flight_at_the_end_is_sent_again_and_counted) {
    Scene scene;

    scene_begin(&scene);
    world.hangs = true;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    world.hangs = false;
    scene_restart(&scene);
    CHECK_EQ(status_of(&scene).repeated_requests, 1);
    offer(&scene, 1);
    run_until(2);
    CHECK(each_arrived_once(&scene, 2));
    scene_restart(&scene);
    CHECK_EQ(status_of(&scene).repeated_requests, 1);
    scene_end(&scene);
}

TEST(interval_of_several_requests_goes_on_after_a_restart_too) {
    static const TransportAnswer answers[] = {
        {.status = 200}, {.status = 503, .retry_after_ns = 3600 * NS_PER_SECOND}};
    Scene scene;

    scene_begin(&scene);
    world.n_series = 4;
    world.per_request = 2;
    world.answers = answers;
    world.n_answers = 2;
    offer(&scene, 0);
    run_for(NS_PER_SECOND);
    CHECK_EQ(world.n_arrived, 1);
    world.n_answers = 0;
    scene_restart(&scene);
    offer(&scene, 1);
    run_until(4);
    CHECK_EQ(world.n_arrived, 4);
    CHECK_EQ(status_of(&scene).sent_samples, 80);
    scene_end(&scene);
}

TEST(destination_that_hangs_does_not_delay_another) {
    Scene scene;
    SendConfig well;
    DestinationOptions options = {.loop = NULL};
    Destination *other = NULL;
    Interval *interval;
    DestinationStatus status;

    scene_begin(&scene);
    well = scene.config;
    strcpy(well.name, "well");
    strcpy(well.url, "http://well");
    options = (DestinationOptions){.config = &well,
                                   .gateway = &scene.gateway,
                                   .state_folder = scene.folder,
                                   .loop = world.loop};
    CHECK_OK(destination_new(&options, &other));
    world.hangs = true;
    for (unsigned i = 0; i < 10; i++) {
        offer(&scene, i);
        interval = interval_of(scene.begin_ns + i * INTERVAL, scene.begin_ns + (i + 1) * INTERVAL);
        destination_offer(other, interval);
        interval_unref(interval);
    }
    run_until(10);
    CHECK(each_arrived_once(&scene, 10));
    destination_status(other, &status);
    CHECK_EQ(status.sent_intervals, 10);
    /* The one that hangs holds two intervals, not ten. */
    CHECK_EQ(status_of(&scene).sent_intervals, 0);
    CHECK_EQ(status_of(&scene).backlog_ns, 10 * INTERVAL);
    other = destination_free(other);
    scene_end(&scene);
}

/* From the middle of a longer interval on, as after IntervalSec= was changed. */
TEST(interval_whose_begin_was_sent_before_is_read_from_there_on) {
    Scene scene;
    DestinationStatus status;
    Interval *longer;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    scene.gateway.interval_ns = 3 * INTERVAL;
    scene_restart(&scene);
    longer = interval_of(scene.begin_ns - INTERVAL, scene.begin_ns + 2 * INTERVAL);
    destination_offer(scene.destination, longer);
    interval_unref(longer);
    run_until(2);
    status = status_of(&scene);
    CHECK_EQ(world.windows, 1);
    CHECK_EQ(world.arrived[1].since_ns, scene.begin_ns + INTERVAL);
    CHECK_EQ(world.arrived[1].until_ns, scene.begin_ns + 2 * INTERVAL);
    CHECK_EQ(status.live_until_ns, scene.begin_ns + 2 * INTERVAL);
    CHECK_EQ(status.backlog_ns, 0);
    scene_end(&scene);
}

/* Interval 0, one that ends so long before, then interval `n`: so many windows are read. */
static void clock_is_behind(uint64_t behind_ns, bool restarts, unsigned n, size_t windows) {
    Scene scene;
    DestinationStatus status;
    Interval *interval;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    if (restarts)
        scene_restart(&scene);
    interval = interval_of(scene.begin_ns - behind_ns, scene.begin_ns - behind_ns + INTERVAL);
    destination_offer(scene.destination, interval);
    interval_unref(interval);
    run_until(2);
    offer(&scene, n);
    run_until(3 + windows);
    run_for(NS_PER_SECOND / 10);
    status = status_of(&scene);
    CHECK_EQ(world.windows, windows);
    CHECK_EQ(world.n_arrived, 3 + windows);
    CHECK(each_arrived_once(&scene, n + 1));
    CHECK_EQ(status.live_until_ns, scene.begin_ns + (n + 1) * INTERVAL);
    CHECK_EQ(status.newest_ns, status.live_until_ns);
    CHECK_EQ(status.backlog_ns, 0);
    CHECK_EQ(status.expired_ns, 0);
    scene_end(&scene);
}

TEST(clock_that_was_behind_makes_no_backlog) {
    const uint64_t hour_ns = UINT64_C(3600) * NS_PER_SECOND;

    for (unsigned restarts = 0; restarts < 2; restarts++) {
        clock_is_behind(5 * hour_ns, restarts, 1, 0);
        clock_is_behind(5 * hour_ns, restarts, 2, 1);
        clock_is_behind(40 * 24 * hour_ns, restarts, 1, 0);
        clock_is_behind(40 * 24 * hour_ns, restarts, 2, 1);
    }
}

/* As long as it lasts by the clock that nobody sets. */
TEST(absence_during_which_the_clock_is_set_is_read) {
    Scene scene;

    scene_begin(&scene);
    offer(&scene, 90);
    run_until(1);
    offer(&scene, 0);
    run_until(2);
    run_for(7 * NS_PER_SECOND / 2);
    offer(&scene, 50);
    run_until(5);
    run_for(NS_PER_SECOND / 10);
    CHECK_EQ(world.windows, 2);
    CHECK_EQ(arrivals(&scene, 48), 1);
    CHECK_EQ(arrivals(&scene, 49), 1);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    scene_end(&scene);
}

TEST(clock_that_was_ahead_leaves_the_lag_as_it_is) {
    Scene scene;

    scene_begin(&scene);
    offer(&scene, 50);
    run_until(1);
    CHECK_EQ(status_of(&scene).newest_ns, scene.begin_ns + 51 * INTERVAL);
    world.hangs = true;
    offer(&scene, 2);
    CHECK_EQ(status_of(&scene).newest_ns, scene.begin_ns + 2 * INTERVAL);
    scene_end(&scene);
}

TEST(damaged_state_starts_afresh_and_says_so) {
    Scene scene;
    char path[128];
    FILE *f;

    scene_begin(&scene);
    offer(&scene, 0);
    run_until(1);
    scene.destination = destination_free(scene.destination);
    snprintf(path, sizeof(path), "%s/there.json", scene.folder);
    f = fopen(path, "w");
    CHECK(f && fputs("{\"version\": 1, \"unsent\": [[9", f) >= 0 && fclose(f) == 0);
    scene.destination = started(&scene);
    CHECK(strstr(status_of(&scene).last_error, "is damaged"));
    CHECK_EQ(status_of(&scene).error_status, SEND_STATUS_LOST);
    CHECK_EQ(status_of(&scene).live_until_ns, 0);
    offer(&scene, 5);
    run_until(2);
    CHECK_EQ(arrivals(&scene, 5), 1);
    scene_end(&scene);
}

TEST(folder_that_cannot_be_written_is_named_and_no_engine_is_blamed) {
    Scene scene;
    DestinationStatus status;

    scene_begin(&scene);
    strcpy(scene.config.type, "file");
    strcpy(scene.config.url, "/nowhere/profiles");
    scene_restart(&scene);
    offer(&scene, 0);
    run_for(NS_PER_SECOND / 2);
    status = status_of(&scene);
    CHECK(strstr(status.last_error, "below /nowhere/profiles: "));
    CHECK(strstr(status.last_error, "No such file"));
    CHECK_EQ(status.error_status, SEND_STATUS_LOCAL);
    CHECK_EQ(status.last_http_status, 0);
    CHECK_EQ(status.backlog_ns, INTERVAL);
    scene_end(&scene);
}

TEST(share_sends_some_intervals_with_more_weight) {
    Scene scene;

    scene_begin(&scene);
    scene.config.share_percent = 20;
    scene_restart(&scene);
    for (unsigned i = 0; i < 50; i++)
        offer(&scene, i);
    run_for(NS_PER_SECOND * 2);
    CHECK(world.n_arrived >= 2 && world.n_arrived <= 25);
    CHECK_EQ(status_of(&scene).thinned_intervals + world.n_arrived, 50);
    CHECK(world.weight == 5.0);
    CHECK_EQ(status_of(&scene).backlog_ns, 0);
    scene_end(&scene);
}

TEST_MAIN()
