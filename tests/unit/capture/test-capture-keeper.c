/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "capture/open/sampler-state.h"
#include "keeper/serve/serve.h"
#include "perfdata/record/record.h"

#include "test.h"
#include "util/clock.h"

/* The sampler over the real keeper, which serves in a child of the test, one recorder after the
 * other. */

enum { RECORDERS = 2 };

typedef struct Served {
    pid_t pid;
    int sockets[RECORDERS];
    Keeper *keeper;
    Sampler *sampler;
    SamplerSession *session;
    uint64_t bytes;
} Served;

static void serve(const int *sockets) {
    KeeperHost host;
    ServeContext context = {.host = &host, .listen = -1};
    int life[2];

    keeper_host_find(&host);
    if (slots_new(&context.slots) < 0 || pipe2(life, 0) < 0)
        _exit(1);
    context.life = life[0];
    for (size_t i = 0; i < RECORDERS; i++) {
        ServeLink link = {.context = &context, .fd = sockets[i], .may_take_over = true};

        while (serve_request(&link) == 0)
            ;
        close(sockets[i]);
    }
    _exit(0);
}

static int served_begin(Served *served) {
    int ends[RECORDERS];

    for (size_t i = 0; i < RECORDERS; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return -errno;
        served->sockets[i] = pair[0];
        ends[i] = pair[1];
    }
    fflush(stdout);
    served->pid = fork();
    if (served->pid == 0) {
        for (size_t i = 0; i < RECORDERS; i++)
            close(served->sockets[i]);
        serve(ends);
    }
    for (size_t i = 0; i < RECORDERS; i++)
        close(ends[i]);
    return keeper_connect(TAKE_FD(served->sockets[0]), &served->keeper);
}

static void served_done(Served *served) {
    sampler_free(served->sampler);
    keeper_disconnect(served->keeper);
    for (size_t i = 0; i < RECORDERS; i++)
        closep(&served->sockets[i]);
    kill(served->pid, SIGKILL);
    waitpid(served->pid, NULL, 0);
}

static int make(Served *served, const char *events) {
    SessionConfig config = {.name = "default",
                            .frequency_hz = 999,
                            .user_samples = true,
                            .kernel_samples = true,
                            .buffer_bytes = 512 * 1024};
    int r = sampler_new(&(SamplerOptions){.keeper = served->keeper, .buffer_total_bytes = 64 << 20},
                        &served->sampler);

    snprintf(config.events, sizeof(config.events), "%s", events);
    return r < 0 ? r : sampler_add(served->sampler, &config, &served->session);
}

static int hear(void *userdata, const Batch *batch) {
    if (batch->session)
        ((Served *)userdata)->bytes += batch->records.size;
    return 0;
}

static int hear_nothing(void *userdata _unused_, uint64_t start_ns _unused_) {
    return 0;
}

static bool takes_samples(Served *served) {
    SamplerSinks sinks = {.on_batch = hear, .on_side_band_end = hear_nothing, .userdata = served};
    uint64_t began_ns = clock_monotonic_ns();

    served->bytes = 0;
    while (served->bytes < 2000 && clock_monotonic_ns() - began_ns < 20000000000ULL)
        if (sampler_sweep(served->sampler, UINT64_MAX, &sinks) < 0)
            return false;
    return served->bytes >= 2000;
}

static uint32_t count_open(Keeper *keeper) {
    KeeperStatus status = {};

    return keeper_status(keeper, &status) == 0 ? status.n_events : 0;
}

#define SERVED(s)                                                                                  \
    _cleanup_(served_done) Served s = {};                                                          \
    int r;                                                                                         \
    CHECK_OK(served_begin(&s));                                                                    \
    r = make(&s, "cpu-clock");                                                                     \
    if (r == -EACCES || r == -EPERM || r == -ENOSYS)                                               \
        TEST_SKIP("perf events refused by the kernel: %s", strerror(-r));                          \
    CHECK_OK(r)

TEST(the_keeper_opens_the_events_of_a_session) {
    SERVED(s);

    CHECK_EQ(sampler_degraded(s.session), 0U);
    CHECK_EQ(count_open(s.keeper), 2 * (uint32_t)s.sampler->online.n);
    CHECK(!sampler_was_taken_over(s.session));
    CHECK_OK(sampler_enable(s.session));
    CHECK(takes_samples(&s));
    s.session = sampler_remove(s.session);
    CHECK_EQ(count_open(s.keeper), (uint32_t)s.sampler->online.n);
}

TEST(groups_and_several_events_are_opened_through_the_keeper) {
    SERVED(s);

    s.session = sampler_remove(s.session);
    s.sampler = sampler_free(s.sampler);
    CHECK_OK(make(&s, "{cpu-clock,context-switches},task-clock"));
    CHECK_EQ(count_open(s.keeper), 4 * (uint32_t)s.sampler->online.n);
    CHECK_OK(sampler_enable(s.session));
    CHECK(takes_samples(&s));
}

TEST(the_next_recorder_finds_the_events_of_the_previous_one) {
    uint64_t id, position;
    SERVED(s);

    CHECK_OK(sampler_enable(s.session));
    CHECK(takes_samples(&s));
    id = s.session->rings.rings[0]->counters[0].id;
    position = ring_tail(&s.session->rings.rings[0]->ring);
    s.sampler = sampler_free(s.sampler);
    s.keeper = keeper_disconnect(s.keeper);
    CHECK_OK(keeper_connect(TAKE_FD(s.sockets[1]), &s.keeper));
    CHECK_OK(make(&s, "cpu-clock"));
    sampler_forget_rest(s.sampler);
    CHECK(sampler_was_taken_over(s.session));
    CHECK_EQ(s.session->rings.rings[0]->counters[0].id, id);
    CHECK_EQ(s.session->rings.rings[0]->taken, position);
    CHECK(takes_samples(&s));
    CHECK_EQ(count_open(s.keeper), 2 * (uint32_t)s.sampler->online.n);
}

TEST(tracepoints_are_read_through_the_keeper) {
    SERVED(s);

    if (access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) < 0)
        TEST_SKIP("tracefs is not mounted, or there is no root");
    s.session = sampler_remove(s.session);
    s.sampler = sampler_free(s.sampler);
    CHECK_OK(make(&s, "sched:sched_sw*"));
    CHECK(sampler_tracing(s.session).size > 1000);
    CHECK_OK(sampler_enable(s.session));
    CHECK(takes_samples(&s));
}

TEST_MAIN()
