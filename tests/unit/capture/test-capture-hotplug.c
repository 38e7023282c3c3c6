/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include "make-sampler.h"
#include "util/file.h"

/*
 * A CPU goes and comes back, for moments only, and is put back whatever happens. Not to be run
 * beside other tests.
 */

static const char switch_path[] = "/sys/devices/system/cpu/cpu1/online";

static int switch_cpu(bool on) {
    int fd = open(switch_path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, on ? "1" : "0", 1);
    int r = n < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    return r;
}

static void put_back(void) {
    char text[8];

    if (file_read_text(switch_path, text, sizeof(text)) > 0 && text[0] == '0')
        (void)switch_cpu(true);
}

static void put_back_and_end(int number) {
    put_back();
    _exit(128 + number);
}

typedef struct Plugged {
    Keeper *keeper;
    Sampler *sampler;
    SamplerSession *session;
    Loop *loop;
    Heard heard;
    unsigned on_cpus, on_full;
    int refreshed;
    bool until_refreshed;
    unsigned side_band_opened;
    size_t rings_then; /* of the session, when side-band was opened */
} Plugged;

static void plugged_done(Plugged *f) {
    put_back();
    sampler_free(f->sampler);
    loop_free(f->loop);
    heard_done(&f->heard);
    made_done(f->keeper);
    free(f->keeper);
}

#define PLUGGED(f, config)                                                                         \
    _cleanup_(plugged_done) Plugged f = {.keeper = calloc(1, sizeof(Keeper))};                     \
    NEED_EVENTS(f.keeper);                                                                         \
    if (access(switch_path, W_OK) < 0)                                                             \
        TEST_SKIP("CPU 1 cannot be switched off here");                                            \
    CHECK_OK(make_sampler(f.keeper, &f.sampler));                                                  \
    CHECK_OK(sampler_add(f.sampler, &(config), &f.session))

static Plugged *refreshed;

static int on_side_band_open(void *userdata _unused_) {
    refreshed->side_band_opened++;
    refreshed->rings_then = refreshed->session->rings.n;
    return 0;
}

static int refresh(Plugged *f) {
    SamplerSinks sinks = sinks_to(&f->heard);
    int r;

    refreshed = f;
    sinks.on_side_band_open = on_side_band_open;
    r = sampler_refresh_cpus(f->sampler, &sinks);
    f->heard.in_samples = false;
    return r;
}

/* True when CPU 1 samples what runs on it, within some seconds. */
static bool cpu_1_samples(Plugged *f) {
    uint64_t began_ns = clock_monotonic_ns();
    cpu_set_t before, only;

    buffer_clear(&f->heard.samples[0][1]);
    sched_getaffinity(0, sizeof(before), &before);
    CPU_ZERO(&only);
    CPU_SET(1, &only);
    if (sched_setaffinity(0, sizeof(only), &only) < 0)
        return false;
    while (f->heard.samples[0][1].size < 500 && clock_monotonic_ns() - began_ns < 5000000000ULL)
        if (sweep_all(f->sampler, UINT64_MAX, &f->heard) < 0)
            break;
    sched_setaffinity(0, sizeof(before), &before);
    return f->heard.samples[0][1].size >= 500;
}

TEST(a_cpu_that_goes_offline_is_drained_and_sampled_when_it_is_back) {
    SessionConfig config = clock_config("default", 999);
    unsigned generation;
    size_t n, before;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    CHECK_OK(sampler_enable(f.session));
    CHECK(cpu_1_samples(&f));
    generation = sampler_generation(f.session);
    CHECK_EQ(refresh(&f), 0);
    CHECK_EQ(sampler_generation(f.session), generation);

    buffer_clear(&f.heard.samples[0][1]);
    before = (size_t)ring_head(&ring_set_find(&f.session->rings, 1)->ring) -
             ring_set_find(&f.session->rings, 1)->taken;
    CHECK_OK(switch_cpu(false));
    CHECK_EQ(refresh(&f), 1);
    CHECK(f.heard.samples[0][1].size >= before);
    CHECK_EQ(sampler_n_cpus(f.session), n - 1);
    CHECK_EQ(made_count(f.keeper), 2 * (uint32_t)(n - 1));
    CHECK_EQ(sampler_generation(f.session), generation + 1);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, n - 1);
    CHECK_EQ(sampler_side_band_event(f.sampler)->n_ids, n - 1);
    CHECK_EQ(sampler_degraded(f.session) & DEGRADED_PARTIAL_CPUS, 0U);
    CHECK_EQ(refresh(&f), 0);

    CHECK_EQ(f.side_band_opened, 0U);
    CHECK_OK(switch_cpu(true));
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(f.side_band_opened, 1U);
    /* Rings take long to open, and samples without names come until side-band is read. */
    CHECK_EQ(f.rings_then, n);
    CHECK_EQ(sampler_n_cpus(f.session), n);
    CHECK_EQ(sampler_generation(f.session), generation + 2);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, n);
    CHECK(cpu_1_samples(&f));
    CHECK(!f.heard.out_of_order);
}

TEST(data_mappings_of_a_cpu_that_comes_back_are_recorded_again) {
    SessionConfig config = clock_config("stacks", 99);
    size_t n;

    config.call_graph = CALL_GRAPH_DWARF;
    config.stack_bytes = 1024;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    CHECK_EQ(f.sampler->data.n, n);
    CHECK_OK(switch_cpu(false));
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(f.sampler->data.n, n - 1);
    CHECK_EQ(made_count(f.keeper), 3 * (uint32_t)(n - 1));
    CHECK_OK(switch_cpu(true));
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(f.sampler->data.n, n);
    CHECK(!ring_set_find(&f.sampler->data, 1)->is_gone);
}

static int on_full(void *userdata) {
    Plugged *f = userdata;

    f->on_full++;
    if (f->until_refreshed)
        return 0;
    loop_stop(f->loop);
    return 0;
}

static int on_cpus(void *userdata) {
    Plugged *f = userdata;

    f->on_cpus++;
    f->refreshed = refresh(f);
    loop_stop(f->loop);
    return 0;
}

static int on_timeout(void *userdata) {
    loop_stop(userdata);
    return -ETIME;
}

TEST(a_cpu_that_was_offline_for_a_moment_is_opened_again) {
    SessionConfig config = clock_config("default", 999);
    uint64_t before;
    size_t n;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    f.until_refreshed = true;
    CHECK_OK(loop_new(&f.loop));
    CHECK_OK(sampler_watch(f.sampler, f.loop, on_full, on_cpus, &f));
    if (f.sampler->uevent_fd < 0)
        TEST_SKIP("no messages about devices in this namespace");
    CHECK_OK(sampler_enable(f.session));
    before = ring_set_find(&f.session->rings, 1)->counters[0].id;
    CHECK_OK(switch_cpu(false));
    CHECK_OK(switch_cpu(true));
    CHECK_OK(loop_add_timer(f.loop, 60000000000ULL, on_timeout, f.loop, NULL));
    CHECK_OK(loop_run(f.loop));
    CHECK_EQ(f.on_cpus, 1U);
    CHECK_EQ(f.refreshed, 1);
    CHECK_EQ(sampler_n_cpus(f.session), n);
    CHECK(ring_set_find(&f.session->rings, 1)->counters[0].id != before);
    CHECK(cpu_1_samples(&f));
}

/* As a suspend does it: no message, and the list of CPUs is the same when the recorder runs again.
 */
TEST(a_cpu_that_was_away_while_nothing_ran_is_opened_again) {
    SessionConfig config = clock_config("default", 999);
    uint64_t before;
    size_t n;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    CHECK_OK(sampler_enable(f.session));
    CHECK(cpu_1_samples(&f));
    CHECK_EQ(refresh(&f), 0);
    before = ring_set_find(&f.session->rings, 1)->counters[0].id;
    CHECK(!hotplug_find_dead(f.sampler));
    CHECK_OK(switch_cpu(false));
    CHECK_OK(switch_cpu(true));
    CHECK(!hotplug_is_due(f.sampler));
    CHECK(hotplug_find_dead(f.sampler));
    for (size_t i = 0; i < f.sampler->side_band.n; i++)
        CHECK_EQ(f.sampler->side_band.rings[i]->is_gone, f.sampler->side_band.rings[i]->cpu == 1);
    CHECK(hotplug_is_due(f.sampler));
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(sampler_n_cpus(f.session), n);
    CHECK(ring_set_find(&f.session->rings, 1)->counters[0].id != before);
    CHECK(!hotplug_find_dead(f.sampler));
    CHECK(cpu_1_samples(&f));
}

TEST(cpu_change_without_uevent_reaches_the_loop) {
    SessionConfig config = clock_config("default", 99);
    PLUGGED(f, config);

    f.until_refreshed = true;
    CHECK_OK(loop_new(&f.loop));
    CHECK_OK(sampler_watch(f.sampler, f.loop, on_full, on_cpus, &f));
    f.sampler->uevent_source = loop_source_free(f.sampler->uevent_source);
    closep(&f.sampler->uevent_fd);
    CHECK_OK(loop_add_timer(f.loop, 60000000000ULL, on_timeout, f.loop, NULL));
    CHECK_OK(switch_cpu(false));
    CHECK_OK(loop_run(f.loop));
    put_back();
    CHECK_EQ(f.refreshed, 1);
    CHECK_OK(loop_run(f.loop));
    CHECK_EQ(f.refreshed, 1);
    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
}

TEST(rings_of_an_offline_cpu_are_drained_after_a_crash) {
    SessionConfig config = clock_config("default", 999);
    size_t held, n;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    CHECK_OK(sampler_enable(f.session));
    CHECK(cpu_1_samples(&f));
    held = (size_t)ring_head(&ring_set_find(&f.session->rings, 1)->ring);
    f.sampler = sampler_free(f.sampler);
    buffer_clear(&f.heard.samples[0][1]);
    CHECK_OK(switch_cpu(false));
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    sampler_forget_rest(f.sampler);
    CHECK_EQ(sampler_n_cpus(f.session), n);
    CHECK_EQ(refresh(&f), 1);
    CHECK_OK(switch_cpu(true));
    CHECK(f.heard.samples[0][1].size >= held);
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(sampler_n_cpus(f.session), n);
}

TEST(a_cpu_that_was_offline_between_two_recorders_is_opened_again) {
    SessionConfig config = clock_config("default", 999);
    size_t held;
    PLUGGED(f, config);

    CHECK_OK(sampler_enable(f.session));
    CHECK(cpu_1_samples(&f));
    held = (size_t)ring_head(&ring_set_find(&f.session->rings, 1)->ring);
    f.sampler = sampler_free(f.sampler);
    buffer_clear(&f.heard.samples[0][1]);
    CHECK_OK(switch_cpu(false));
    CHECK_OK(switch_cpu(true));
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK(sampler_was_taken_over(f.session));
    CHECK(hotplug_is_due(f.sampler));
    CHECK_EQ(refresh(&f), 1);
    CHECK(f.heard.samples[0][1].size >= held);
    CHECK(!hotplug_is_due(f.sampler));
    CHECK(cpu_1_samples(&f));
    CHECK_EQ(pd_events_at(sampler_events(f.session), 1)->attr.read_format,
             pd_events_at(sampler_events(f.session), 0)->attr.read_format);
}

static int refuse_cpu_1(const KeeperEvent *event) {
    return event->cpu == 1 ? -ENODEV : 0;
}

TEST(a_cpu_that_goes_offline_while_it_is_opened_is_no_failure) {
    SessionConfig config = clock_config("default", 99);
    size_t n;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    sampler_remove(f.session);
    f.keeper->refuse = refuse_cpu_1;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_n_cpus(f.session), n - 1);
    CHECK_EQ(sampler_degraded(f.session), 0U);
    CHECK_EQ(refresh(&f), 0);
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_PARTIAL_CPUS);
    f.keeper->refuse = NULL;
    CHECK_EQ(refresh(&f), 2);
    CHECK_EQ(sampler_n_cpus(f.session), n);
    CHECK_EQ(sampler_degraded(f.session), 0U);
}

static int refuse_side_band_of_cpu_1(const KeeperEvent *event) {
    return event->cpu == 1 && event->ring_bytes == SIDE_BAND_RING_BYTES ? -EMFILE : 0;
}

TEST(a_cpu_that_cannot_be_opened_again_stops_no_other) {
    SessionConfig config = clock_config("default", 999);
    size_t n;
    PLUGGED(f, config);

    n = f.sampler->online.n;
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(switch_cpu(false));
    CHECK_EQ(refresh(&f), 1);
    CHECK_OK(switch_cpu(true));
    f.keeper->refuse = refuse_side_band_of_cpu_1;
    CHECK_EQ(refresh(&f), 0);
    CHECK_EQ(sampler_n_cpus(f.session), n - 1);
    CHECK_EQ(sampler_degraded(f.session) & DEGRADED_PARTIAL_CPUS, (unsigned)DEGRADED_PARTIAL_CPUS);
    f.keeper->refuse = NULL;
    CHECK_EQ(refresh(&f), 1);
    CHECK_EQ(sampler_degraded(f.session) & DEGRADED_PARTIAL_CPUS, 0U);
    CHECK(cpu_1_samples(&f));
}

static bool one_tells(const Plugged *f) {
    uint64_t head = 0;

    for (size_t i = 0; i < f->session->rings.n; i++)
        head = MAX(head, ring_head(&f->session->rings.rings[i]->ring));
    return head >= watermark(f->session->ring_bytes, SAMPLES_EIGHTHS);
}

/* Whether the machine itself filled a part of a ring that all sessions share, with new processes.
 */
static bool shared_one_fills(const Plugged *f) {
    const RingSet *sets[] = {&f->sampler->side_band, &f->sampler->data};

    for (size_t k = 0; k < ARRAY_SIZE(sets); k++)
        for (size_t i = 0; i < sets[k]->n; i++) {
            const CpuRing *ring = sets[k]->rings[i];

            if (ring_head(&ring->ring) - ring->taken >= ring->ring.size / 32)
                return true;
        }
    return false;
}

TEST(a_full_ring_wakes_the_loop) {
    SessionConfig config = clock_config("default", 4999);
    _cleanup_(plugged_done) Plugged f = {.keeper = calloc(1, sizeof(Keeper))};
    int r;

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_OK(loop_new(&f.loop));
    CHECK_OK(sampler_watch(f.sampler, f.loop, on_full, on_cpus, &f));
    config.buffer_bytes = 0;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(loop_add_timer(f.loop, 60000000000ULL, on_timeout, f.loop, NULL));
    while ((r = loop_run(f.loop)) == 0 && !one_tells(&f) && shared_one_fills(&f))
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_OK(r);
    CHECK(one_tells(&f));
}

TEST(a_ring_that_was_just_swept_starts_no_other_sweep) {
    SessionConfig config = clock_config("default", 4999);
    _cleanup_(plugged_done) Plugged f = {.keeper = calloc(1, sizeof(Keeper))};
    uint64_t began_ns = clock_monotonic_ns();
    int r;

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_OK(loop_new(&f.loop));
    CHECK_OK(sampler_watch(f.sampler, f.loop, on_full, on_cpus, &f));
    config.buffer_bytes = 0;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    while (!one_tells(&f) && clock_monotonic_ns() - began_ns < 60000000000ULL)
        usleep(1000);
    CHECK(one_tells(&f));
    CHECK_OK(sampler_disable(f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_OK(loop_add_timer(f.loop, 300000000ULL, on_timeout, f.loop, NULL));
    while ((r = loop_run(f.loop)) == 0 && shared_one_fills(&f))
        CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_EQ(r, -ETIME);
}

TEST(a_target_that_ends_does_not_wake_the_loop_for_ever) {
    pid_t child = spin_in_child();
    SessionConfig config = clock_config("default", 999);
    unsigned i;
    int r;
    _cleanup_(plugged_done)
        Plugged f = {.keeper = calloc(1, sizeof(Keeper)), .until_refreshed = true};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_OK(loop_new(&f.loop));
    CHECK_OK(sampler_watch(f.sampler, f.loop, on_full, on_cpus, &f));
    config.n_pids = 1;
    config.pids[0] = (uint32_t)child;
    r = sampler_add(f.sampler, &config, &f.session);
    end_child(child);
    CHECK_OK(r);
    CHECK_OK(loop_add_timer(f.loop, 300000000ULL, on_timeout, f.loop, NULL));
    for (i = 0; i < 3; i++)
        CHECK_EQ(loop_run(f.loop), -ETIME);
    CHECK(f.on_full <= 10 * f.sampler->online.n);
}

int main(int argc, char **argv) {
    atexit(put_back);
    signal(SIGINT, put_back_and_end);
    signal(SIGTERM, put_back_and_end);
    signal(SIGABRT, put_back_and_end);
    signal(SIGSEGV, put_back_and_end);
    return test_main(argc, argv);
}
