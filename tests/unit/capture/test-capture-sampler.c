/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>
#include <sys/resource.h>

#include "capture/open/open-ring.h"
#include "make-sampler.h"

/* Sessions with real events on this machine, through a keeper made by hand. */

TEST(every_cpu_is_sampled) {
    SessionConfig config = clock_config("default", 499);
    FIXTURE(f, config);

    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
    CHECK_EQ(pd_events_count(sampler_events(f.session)), (size_t)2);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, f.sampler->online.n);
    CHECK_STREQ(pd_events_at(sampler_events(f.session), 0)->name, "cpu-clock");
    CHECK_STREQ(pd_events_at(sampler_events(f.session), 1)->name, "dummy");
    CHECK_STREQ(sampler_describe(f.session), "cpu-clock at 499 Hz");
    CHECK_EQ(sampler_degraded(f.session), 0U);
    CHECK(!sampler_was_taken_over(f.session));
    CHECK_OK(sampler_enable(f.session));
    for (size_t i = 0; i < f.sampler->online.n; i++)
        CHECK(spin_on(f.sampler->online.cpus[i], f.session));
    CHECK_OK(sampler_disable(f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    for (size_t i = 0; i < f.sampler->online.n; i++) {
        unsigned cpu = f.sampler->online.cpus[i];
        Samples s = read_samples(buffer_bytes(&f.heard.samples[0][cpu]), sampler_events(f.session),
                                 NULL, NULL);

        CHECK(s.sane);
        CHECK(s.n > 0);
    }
}

TEST(several_sessions_sample_side_by_side) {
    SessionConfig config = clock_config("one", 499), other = clock_config("two", 999);
    SamplerSession *two;
    FIXTURE(f, config);

    CHECK_OK(sampler_add(f.sampler, &other, &two));
    sampler_set_userdata(two, (void *)1);
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(sampler_enable(two));
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK(wait_for_bytes(two, 2000));
    CHECK_OK(sweep_all(f.sampler, 700, &f.heard));
    CHECK(!f.heard.out_of_order);
    CHECK(f.heard.samples[0][0].size > 0);
    CHECK(f.heard.samples[1][0].size > 0);
    CHECK(read_samples(buffer_bytes(&f.heard.samples[0][0]), sampler_events(f.session), NULL, NULL)
              .sane);
    CHECK(read_samples(buffer_bytes(&f.heard.samples[1][0]), sampler_events(two), NULL, NULL).sane);
    f.session = sampler_remove(f.session);
    CHECK(wait_for_bytes(two, 1000));
    buffer_clear(&f.heard.samples[0][0]);
    CHECK_OK(sweep_all(f.sampler, 700, &f.heard));
    CHECK_EQ(f.heard.samples[0][0].size, (size_t)0);
    sampler_remove(two);
    CHECK_EQ(made_count(f.keeper), (uint32_t)f.sampler->online.n);
}

TEST(a_session_may_be_closed_during_a_sweep) {
    SessionConfig config = clock_config("one", 4999);
    SamplerSinks sinks;
    FIXTURE(f, config);

    sinks = sinks_to(&f.heard);
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 4000));
    while (f.heard.samples[0][0].size + f.heard.samples[0][1].size == 0)
        CHECK_EQ(sampler_sweep(f.sampler, 1, &sinks), 0);
    sampler_remove(f.session);
    CHECK_EQ(sampler_sweep(f.sampler, 1, &sinks), 1);
}

TEST(a_session_that_fails_leaves_no_event_and_disturbs_no_other) {
    SessionConfig config = clock_config("one", 499), other = clock_config("two", 499);
    SamplerSession *two = NULL;
    uint32_t before;
    FIXTURE(f, config);

    before = made_count(f.keeper);
    snprintf(other.cpus, sizeof(other.cpus), "0-");
    CHECK_EQ(sampler_add(f.sampler, &other, &two), -EINVAL);
    other.cpus[0] = '\0';
    other.n_pids = 1;
    other.pids[0] = INT32_MAX;
    CHECK_EQ(sampler_add(f.sampler, &other, &two), -ESRCH);
    other.n_pids = 0;
    snprintf(other.events, sizeof(other.events), "no-such-event");
    CHECK(sampler_add(f.sampler, &other, &two) < 0);
    CHECK(!two);
    CHECK_EQ(made_count(f.keeper), before);
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 500));
}

TEST(only_the_listed_cpus_are_sampled) {
    SessionConfig config = clock_config("one", 499);
    FIXTURE(f, config);

    sampler_remove(f.session);
    snprintf(config.cpus, sizeof(config.cpus), "0");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_n_cpus(f.session), (size_t)1);
    CHECK_EQ(f.session->rings.rings[0]->cpu, 0U);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, (size_t)1);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 1)->n_ids, f.sampler->online.n);
}

/* Samples of each event of the session's table. */
static int count_by_event(const Fixture *f, size_t *counts) {
    for (size_t i = 0; i < HEARD_CPUS; i++) {
        Bytes bytes = buffer_bytes(&f->heard.samples[0][i]);

        for (size_t at = 0; at < bytes.size;) {
            PdRecord record = pd_record_at(bytes.data + at, false);
            PdStamp stamp;

            if (pd_events_stamp(sampler_events(f->session), &record, &stamp) < 0)
                return -EBADMSG;
            if (record.type == PD_RECORD_SAMPLE && stamp.event)
                counts[stamp.event->index]++;
            at += record.size;
        }
    }
    return 0;
}

TEST(events_of_a_session_share_a_ring) {
    SessionConfig config = clock_config("one", 499);
    size_t counts[4] = {};
    FIXTURE(f, config);

    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "{cpu-clock,context-switches},task-clock");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(pd_events_count(sampler_events(f.session)), (size_t)4);
    for (size_t e = 0; e < 3; e++)
        CHECK_EQ(pd_events_at(sampler_events(f.session), e)->n_ids, f.sampler->online.n);
    CHECK_OK(sampler_enable(f.session));
    for (unsigned i = 0; i < 100; i++)
        sleep_ms(1);
    CHECK(spin_on(0, f.session));
    CHECK(wait_for_bytes(f.session, 4000));
    CHECK_OK(sampler_disable(f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_OK(count_by_event(&f, counts));
    CHECK(counts[0] > 0);
    CHECK(counts[1] > 0);
    CHECK(counts[2] > 0);
    CHECK_EQ(counts[3], (size_t)0);
}

TEST(a_session_with_tracepoints_has_their_formats) {
    SessionConfig config = clock_config("one", 499);
    FIXTURE(f, config);

    if (access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) < 0)
        TEST_SKIP("tracefs is not mounted, or there is no root");
    CHECK_EQ(sampler_tracing(f.session).size, (size_t)0);
    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "sched:sched_switch");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK(sampler_tracing(f.session).size > 1000);
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 1000));
}

TEST(the_frequency_is_lowered_to_the_limit) {
    SessionConfig config = clock_config("one", 999);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(sampler_new(&(SamplerOptions){.keeper = f.keeper,
                                           .buffer_total_bytes = 1 << 20,
                                           .max_frequency_hz = 500},
                         &f.sampler));
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_RATE_LOWERED);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->attr.sample_period, 500ULL);
}

TEST(a_new_cpu_is_opened_below_a_lowered_rate_limit) {
    SessionConfig config = clock_config("one", 999);
    CpuRing *ring;
    PdAttr attr;
    unsigned cpu;
    FIXTURE(f, config);

    cpu = f.session->rings.rings[0]->cpu;
    ring_set_remove(&f.session->rings, f.session->rings.rings[0], true);
    f.sampler->max_rate_hz = 500;
    CHECK_EQ(open_ring(&f.session->rings, cpu), 1);
    ring = ring_set_find(&f.session->rings, cpu);
    CHECK_OK(pd_attr_parse(
        &attr, (Bytes){f.keeper->events[ring->counters[0].slot].event.attr, KEEPER_ATTR_MAX},
        false));
    CHECK_EQ(attr.sample_period, 500ULL);
    CHECK_EQ(f.session->plan.events[0].attr.sample_period, 999ULL);
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_RATE_LOWERED);
}

TEST(too_few_descriptors_are_reported_before_anything_is_opened) {
    SessionConfig config = clock_config("one", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};
    struct rlimit few;
    int status;
    pid_t child;

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    child = fork();
    if (child == 0) {
        few = (struct rlimit){.rlim_cur = 64 + f.sampler->online.n,
                              .rlim_max = 64 + f.sampler->online.n};
        (void)setrlimit(RLIMIT_NOFILE, &few);
        _exit(sampler_add(f.sampler, &config, &f.session) == -EMFILE ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static int refuse_all(const KeeperEvent *event _unused_) {
    return -EACCES;
}

TEST(a_refusal_of_the_kernel_is_reported) {
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    f.keeper->refuse = refuse_all;
    CHECK_EQ(make_sampler(f.keeper, &f.sampler), -EACCES);
    CHECK(!f.sampler);
    CHECK_EQ(made_count(f.keeper), 0U);
}

TEST_MAIN()
