/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A destination with an engine, a transport and a source of the test's own: each request carries
 * the span of its interval and the numbers of its series, and the test says what is answered. So
 * what arrived can be compared with what was offered.
 */

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/engine-format.h"
#include "send/destination.h"
#include "transport/retry.h"
#include "util/clock.h"
#include "util/text.h"

/* A live interval is sent within half of it. */
#define INTERVAL NS_PER_SECOND

enum { ARRIVED_MAX = 64 };

typedef struct Arrived {
    uint64_t since_ns, until_ns;
    unsigned first, next;
} Arrived;

static struct {
    Loop *loop;
    unsigned n_series, per_request;
    unsigned dropped, other, folded; /* samples, the last ones of each request */
    char site[8];                    /* a label of each series */
    /* Answers, by the number of the request; the last one goes on. */
    const TransportAnswer *answers;
    size_t n_answers, asked;
    bool hangs;
    int window_error;
    uint64_t longest_window_ns; /* profd refuses longer ones; 0: none */
    int long_window_error;      /* with this error; 0: -EACCES */
    uint64_t window_deleted_ns; /* of each window, which says so also with -ENODATA */
    size_t windows;
    size_t stop_at; /* requests that arrived */
    Arrived arrived[ARRIVED_MAX];
    size_t n_arrived;
    double weight;
    size_t max_bytes;
    bool is_solid; /* no body becomes smaller */
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
    static char name[] = "site";

    *ret = (SeriesList){.items = calloc(world.n_series + 1, sizeof(Series)), .n = world.n_series};
    ret->dropped = world.dropped;
    ret->other = world.other;
    for (unsigned i = 0; ret->items && i < world.n_series; i++) {
        ret->items[i].samples = 10;
        ret->items[i].labels = (LabelSet){.list = {{name, world.site}}, .n = 1};
    }
    return ret->items ? 0 : -ENOMEM;
}

void series_list_done(SeriesList *list) {
    free(list->items);
}

static inline int test_encode(const EngineInput *input, Buffer *body, size_t *ret_next) {
    size_t next = input->first + world.per_request;

    *ret_next = next < input->series->n ? next : input->series->n;
    if (input->max_bytes > 0 && input->max_bytes < 64 * 1024)
        *ret_next = input->first + 1;
    *input->folded += world.folded;
    world.weight = input->weight;
    world.max_bytes = input->max_bytes;
    text_printf(body, "%" PRIu64 " %" PRIu64 " %zu %zu%c", input->interval->since_ns,
                input->interval->until_ns, input->first, *ret_next, 0);
    if (input->max_bytes >= 64 * 1024 || world.is_solid)
        buffer_zero(body, 100 * 1024);
    return 0;
}

static const Engine test_engine = {.name = "test",
                                   .path = "/push",
                                   .encode = test_encode,
                                   .tenant_header = "X-Scope-OrgID",
                                   .rejection = otlp_rejection};

static const Engine test_folder = {.name = "file", .encode = test_encode};

const Engine *engine_by_name(const char *name) {
    return strcmp(name, "test") == 0   ? &test_engine
           : strcmp(name, "file") == 0 ? &test_folder
                                       : NULL;
}

/* -- transport --------------------------------------------------------------------------------- */

struct TransportRequest {
    TransportOptions options;
    LoopSource *turn;
};

static inline void test_keep(const TransportOptions *options) {
    Arrived *arrived = &world.arrived[world.n_arrived % ARRIVED_MAX];

    (void)sscanf(options->body, "%" SCNu64 " %" SCNu64 " %u %u", &arrived->since_ns,
                 &arrived->until_ns, &arrived->first, &arrived->next);
    world.n_arrived++;
}

static inline int test_answer(void *userdata) {
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

static inline Interval *interval_of(uint64_t since_ns, uint64_t until_ns) {
    Interval *interval = calloc(1, sizeof(*interval));

    if (!interval)
        abort();
    *interval = (Interval){.references = 1, .since_ns = since_ns, .until_ns = until_ns};
    return interval;
}

static inline int test_window(void *userdata) {
    SourceJob *job = userdata;
    _cleanup_(interval_unrefp) Interval *interval = NULL;
    SourceDone done = job->done;
    void *arg = job->userdata;

    int error = world.window_error;

    if (world.longest_window_ns > 0 &&
        job->window.until_ns - job->window.since_ns > world.longest_window_ns)
        error = world.long_window_error ? world.long_window_error : -EACCES;
    if (error == 0 || world.window_deleted_ns > 0) {
        interval = interval_of(job->window.since_ns, job->window.until_ns);
        interval->missing_ns = interval->deleted_ns = world.window_deleted_ns;
    }
    (void)source_job_cancel(job);
    done(arg, error, interval);
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
    uint64_t window_pause_ns;
    uint64_t begin_ns; /* a border of intervals, some minutes ago */
} Scene;

static inline int on_limit(void *userdata) {
    loop_stop(userdata);
    return 0;
}

static inline Destination *started(Scene *scene) {
    DestinationOptions options = {.config = &scene->config,
                                  .gateway = &scene->gateway,
                                  .state_folder = scene->folder,
                                  .loop = world.loop,
                                  .window_pause_ns = scene->window_pause_ns};
    Destination *destination = NULL;

    if (destination_new(&options, &destination) < 0)
        abort();
    return destination;
}

static inline void scene_begin(Scene *scene) {
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

static inline int remove_one(const char *path, const struct stat *status _unused_,
                             int kind _unused_, struct FTW *at _unused_) {
    return remove(path);
}

static inline void scene_end(Scene *scene) {
    scene->destination = destination_free(scene->destination);
    world.loop = loop_free(world.loop);
    (void)nftw(scene->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void scene_restart(Scene *scene) {
    scene->destination = destination_free(scene->destination);
    scene->destination = started(scene);
}

/* Interval number n since the beginning. */
static inline void offer(Scene *scene, unsigned n) {
    _cleanup_(interval_unrefp) Interval *interval =
        interval_of(scene->begin_ns + n * INTERVAL, scene->begin_ns + (n + 1) * INTERVAL);

    destination_offer(scene->destination, interval);
}

/* Until so many requests arrived; a limit keeps a broken test from hanging. */
static inline void run_until(size_t arrived) {
    LoopSource *limit = NULL;

    world.stop_at = arrived;
    if (world.n_arrived >= arrived)
        return;
    if (loop_add_timer(world.loop, 60 * NS_PER_SECOND, on_limit, world.loop, &limit) == 0)
        (void)loop_run(world.loop);
    (void)loop_source_free(limit);
}

static inline void run_for(uint64_t ns) {
    LoopSource *limit = NULL;

    world.stop_at = 0;
    if (loop_add_timer(world.loop, ns, on_limit, world.loop, &limit) == 0)
        (void)loop_run(world.loop);
    (void)loop_source_free(limit);
}

static inline DestinationStatus status_of(const Scene *scene) {
    DestinationStatus status;

    destination_status(scene->destination, &status);
    return status;
}

/* How often the interval arrived, whole. */
static inline unsigned arrivals(const Scene *scene, unsigned n) {
    uint64_t since = scene->begin_ns + n * INTERVAL, until = since + INTERVAL;
    unsigned found = 0;

    for (size_t i = 0; i < world.n_arrived; i++)
        found += world.arrived[i].since_ns <= since && world.arrived[i].until_ns >= until;
    return found;
}

static inline bool each_arrived_once(const Scene *scene, unsigned n) {
    for (unsigned i = 0; i < n; i++)
        if (arrivals(scene, i) != 1) {
            printf("# interval %u arrived %u times\n", i, arrivals(scene, i));
            return false;
        }
    return true;
}
