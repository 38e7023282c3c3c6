/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "send/destination.h"

#include <ftw.h>
#include <sys/stat.h>

#include "send/retry.h"
#include "send/state-file.h"
#include "test.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * A destination with an engine, a transport and a source of the test's own: each request carries
 * the span of its interval and the numbers of its series, and the test says what is answered. So
 * what arrived can be compared with what was offered.
 */

/* A live interval is sent within half of it. */
#define INTERVAL NS_PER_SECOND

enum { ARRIVED_MAX = 64 };

typedef struct Arrived {
    uint64_t since_ns, until_ns;
    unsigned first, next;
    bool is_of_window;
} Arrived;

static struct {
    Loop *loop;
    unsigned n_series, per_request;
    /* Answers, by the number of the request; the last one goes on. */
    const TransportAnswer *answers;
    size_t n_answers, asked;
    bool hangs;
    int window_error;
    size_t windows;
    size_t stop_at; /* requests that arrived */
    Arrived arrived[ARRIVED_MAX];
    size_t n_arrived;
    double weight;
    size_t max_bytes;
} world;

/* -- interval, series, engine ------------------------------------------------------------------ */

Interval *interval_ref(Interval *interval) {
    interval->references++;
    return interval;
}

Interval *interval_unref(Interval *interval) {
    if (interval && --interval->references == 0)
        free(interval);
    return NULL;
}

int series_list_make(const Interval *interval _unused_, const SeriesOptions *options _unused_,
                     SeriesList *ret) {
    *ret = (SeriesList){.items = calloc(world.n_series + 1, sizeof(Series)), .n = world.n_series};
    for (unsigned i = 0; ret->items && i < world.n_series; i++)
        ret->items[i].samples = 10;
    return ret->items ? 0 : -ENOMEM;
}

void series_list_done(SeriesList *list) {
    free(list->items);
}

static int test_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    size_t next = input->first + world.per_request;

    *ret_next = next < input->series->n ? next : input->series->n;
    if (input->max_bytes > 0 && input->max_bytes < 64 * 1024)
        *ret_next = input->first + 1;
    world.weight = input->weight;
    world.max_bytes = input->max_bytes;
    text_printf(body, "%" PRIu64 " %" PRIu64 " %zu %zu%c", input->interval->since_ns,
                input->interval->until_ns, input->first, *ret_next, 0);
    if (input->max_bytes >= 64 * 1024)
        buffer_zero(body, 100 * 1024);
    return 0;
}

static const Engine test_engine = {
    .name = "test", .path = "/push", .encode = test_encode, .tenant_header = "X-Scope-OrgID"};

const Engine *engine_by_name(const char *name) {
    return strcmp(name, "test") == 0 ? &test_engine : NULL;
}

/* -- transport --------------------------------------------------------------------------------- */

struct TransportRequest {
    TransportOptions options;
    LoopSource *turn;
};

static void test_keep(const TransportOptions *options) {
    Arrived *arrived = &world.arrived[world.n_arrived % ARRIVED_MAX];

    (void)sscanf(options->body, "%" SCNu64 " %" SCNu64 " %u %u", &arrived->since_ns,
                 &arrived->until_ns, &arrived->first, &arrived->next);
    world.n_arrived++;
}

static int test_answer(void *userdata) {
    TransportRequest *request = userdata;
    TransportOptions options = request->options;
    size_t n = world.asked++;
    TransportAnswer answer = {.status = 200, .sent_bytes = options.size};

    if (world.n_answers > 0)
        answer = world.answers[n < world.n_answers ? n : world.n_answers - 1];
    if (answer.status == 200)
        test_keep(&options);
    (void)loop_source_free(request->turn);
    free(request);
    options.done(options.userdata, &answer);
    if (world.stop_at > 0 && world.n_arrived >= world.stop_at)
        loop_stop(world.loop);
    return 0;
}

int transport_send(Transport *transport _unused_, const TransportOptions *options,
                   TransportRequest **ret) {
    TransportRequest *request = calloc(1, sizeof(*request));

    if (!request)
        return -ENOMEM;
    request->options = *options;
    if (loop_add_deferred(world.loop, test_answer, request, &request->turn) < 0)
        abort();
    if (!world.hangs || strstr(options->url, "well"))
        (void)loop_trigger(request->turn);
    *ret = request;
    return 0;
}

TransportRequest *transport_cancel(TransportRequest *request) {
    if (request)
        (void)loop_source_free(request->turn);
    free(request);
    return NULL;
}

/* -- source ------------------------------------------------------------------------------------ */

struct SourceJob {
    SourceWindow window;
    SourceDone done;
    void *userdata;
    LoopSource *turn;
};

static Interval *interval_of(uint64_t since_ns, uint64_t until_ns) {
    Interval *interval = calloc(1, sizeof(*interval));

    if (!interval)
        abort();
    *interval = (Interval){.references = 1, .since_ns = since_ns, .until_ns = until_ns};
    return interval;
}

static int test_window(void *userdata) {
    SourceJob *job = userdata;
    _cleanup_(interval_unrefp) Interval *interval = NULL;
    SourceDone done = job->done;
    void *arg = job->userdata;

    if (world.window_error == 0)
        interval = interval_of(job->window.since_ns, job->window.until_ns);
    (void)source_job_cancel(job);
    done(arg, world.window_error, interval);
    return 0;
}

int source_window(Source *source _unused_, const SourceWindow *window, SourceDone done,
                  void *userdata, SourceJob **ret) {
    SourceJob *job = calloc(1, sizeof(*job));

    if (!job)
        return -ENOMEM;
    world.windows++;
    *job = (SourceJob){.window = *window, .done = done, .userdata = userdata};
    if (loop_add_deferred(world.loop, test_window, job, &job->turn) < 0 ||
        loop_trigger(job->turn) < 0)
        abort();
    *ret = job;
    return 0;
}

SourceJob *source_job_cancel(SourceJob *job) {
    if (job)
        (void)loop_source_free(job->turn);
    free(job);
    return NULL;
}

/* -- the scene --------------------------------------------------------------------------------- */

typedef struct Scene {
    char folder[64];
    GatewayConfig gateway;
    SendConfig config;
    Destination *destination;
    uint64_t begin_ns; /* a border of intervals, some minutes ago */
} Scene;

static int on_limit(void *userdata) {
    loop_stop(userdata);
    return 0;
}

static Destination *started(Scene *scene) {
    DestinationOptions options = {.config = &scene->config,
                                  .gateway = &scene->gateway,
                                  .state_folder = scene->folder,
                                  .loop = world.loop};
    Destination *destination = NULL;

    if (destination_new(&options, &destination) < 0)
        abort();
    return destination;
}

static void scene_begin(Scene *scene) {
    uint64_t now = clock_ns(CLOCK_REALTIME);

    memset(&world, 0, sizeof(world));
    world.n_series = 1;
    world.per_request = 100;
    *scene = (Scene){.gateway = {.interval_ns = INTERVAL, .host = "web-1"},
                     .config = {.name = "there", .type = "test", .url = "http://e:1"}};
    strcpy(scene->folder, "/tmp/profd-destination-XXXXXX");
    scene->begin_ns = now - now % INTERVAL - 100 * INTERVAL;
    if (!mkdtemp(scene->folder) || loop_new(&world.loop) < 0)
        abort();
    scene->destination = started(scene);
}

static int remove_one(const char *path, const struct stat *status _unused_, int kind _unused_,
                      struct FTW *at _unused_) {
    return remove(path);
}

static void scene_end(Scene *scene) {
    scene->destination = destination_free(scene->destination);
    world.loop = loop_free(world.loop);
    (void)nftw(scene->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void scene_restart(Scene *scene) {
    scene->destination = destination_free(scene->destination);
    scene->destination = started(scene);
}

/* Interval number n since the beginning. */
static void offer(Scene *scene, unsigned n) {
    _cleanup_(interval_unrefp) Interval *interval =
        interval_of(scene->begin_ns + n * INTERVAL, scene->begin_ns + (n + 1) * INTERVAL);

    destination_offer(scene->destination, interval);
}

/* Until so many requests arrived; a limit keeps a broken test from hanging. */
static void run_until(size_t arrived) {
    LoopSource *limit = NULL;

    world.stop_at = arrived;
    if (world.n_arrived >= arrived)
        return;
    if (loop_add_timer(world.loop, 60 * NS_PER_SECOND, on_limit, world.loop, &limit) == 0)
        (void)loop_run(world.loop);
    (void)loop_source_free(limit);
}

static void run_for(uint64_t ns) {
    LoopSource *limit = NULL;

    world.stop_at = 0;
    if (loop_add_timer(world.loop, ns, on_limit, world.loop, &limit) == 0)
        (void)loop_run(world.loop);
    (void)loop_source_free(limit);
}

static DestinationStatus status_of(const Scene *scene) {
    DestinationStatus status;

    destination_status(scene->destination, &status);
    return status;
}

/* How often the interval arrived, whole. */
static unsigned arrivals(const Scene *scene, unsigned n) {
    uint64_t since = scene->begin_ns + n * INTERVAL, until = since + INTERVAL;
    unsigned found = 0;

    for (size_t i = 0; i < world.n_arrived; i++)
        found += world.arrived[i].since_ns <= since && world.arrived[i].until_ns >= until;
    return found;
}

static bool each_arrived_once(const Scene *scene, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (arrivals(scene, i) != 1) {
            printf("# interval %u arrived %u times\n", i, arrivals(scene, i));
            return false;
        }
    return true;
}

/* -- tests ------------------------------------------------------------------------------------- */

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

TEST(single_series_that_is_too_large_is_lost_and_counted) {
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
    CHECK_EQ(status_of(&scene).live_until_ns, 0);
    offer(&scene, 5);
    run_until(2);
    CHECK_EQ(arrivals(&scene, 5), 1);
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
