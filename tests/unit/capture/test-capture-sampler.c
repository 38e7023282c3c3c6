/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>

#include "capture/sampler/sampler.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "capture/open/open-ring.h"
#include "capture/plan/limit.h"
#include "make-sampler.h"
#include "util/log.h"

/* Real events on this machine, through a keeper made by hand. */

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

/* -- sessions -- */

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

/* A thread that begins a job when the test says so. */
typedef struct Aside {
    void (*work)(void *job), (*done)(void *job);
    void *job;
    pthread_t thread;
    unsigned n_opened;
} Aside;

static int put_aside(void *userdata, void (*work)(void *job), void (*done)(void *job), void *job) {
    Aside *aside = userdata;

    if (aside->job)
        return -EBUSY;
    aside->work = work;
    aside->done = done;
    aside->job = job;
    return 0;
}

static void on_opened(void *userdata) {
    ((Aside *)userdata)->n_opened++;
}

static void *work_aside(void *userdata) {
    Aside *aside = userdata;

    aside->work(aside->job);
    return NULL;
}

static void begin_job(Aside *aside) {
    CHECK(aside->job);
    CHECK_EQ(pthread_create(&aside->thread, NULL, work_aside, aside), 0);
}

static void wait_for_job(Aside *aside) {
    CHECK_EQ(pthread_join(aside->thread, NULL), 0);
}

static void finish_job(Aside *aside) {
    void *job = aside->job;

    aside->job = NULL;
    aside->done(job);
}

static void end_job(Aside *aside) {
    wait_for_job(aside);
    finish_job(aside);
}

static size_t heard_of_first(const Heard *heard, const Sampler *sampler) {
    size_t n = 0;

    for (size_t i = 0; i < sampler->online.n; i++)
        n += heard->samples[0][sampler->online.cpus[i]].size;
    return n;
}

static void use_aside(Sampler *sampler, Aside *aside) {
    sampler->options.aside = put_aside;
    sampler->options.on_opened = on_opened;
    sampler->options.userdata = aside;
}

#define CHECK_SWEPT(f)                                                                             \
    do {                                                                                           \
        size_t swept = heard_of_first(&(f).heard, (f).sampler);                                    \
        CHECK(wait_for_bytes((f).session, 500));                                                   \
        CHECK_OK(sweep_all((f).sampler, UINT64_MAX, &(f).heard));                                  \
        CHECK(heard_of_first(&(f).heard, (f).sampler) > swept);                                    \
    } while (0)

TEST(sessions_are_swept_while_another_is_opened_and_closed) {
    SessionConfig config = clock_config("one", 4999), other = clock_config("two", 499);
    SamplerOpening *opening = NULL;
    SamplerSession *two = NULL;
    Aside aside = {};
    char error[128];
    uint32_t before;
    FIXTURE(f, config);

    use_aside(f.sampler, &aside);
    before = made_count(f.keeper);
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(sampler_opening_begin(f.sampler, &other, false, &opening));
    CHECK_SWEPT(f);
    begin_job(&aside);
    CHECK_SWEPT(f);
    CHECK_EQ(sampler_opening_end(opening, &two, error, sizeof(error)), 0);
    end_job(&aside);
    CHECK_EQ(aside.n_opened, 1U);
    CHECK_EQ(sampler_opening_end(opening, &two, error, sizeof(error)), 1);
    CHECK_EQ(sampler_n_cpus(two), f.sampler->online.n);
    CHECK_EQ(pd_events_at(sampler_events(two), 1)->n_ids, f.sampler->online.n);
    sampler_set_userdata(two, (void *)1);
    CHECK_OK(sampler_enable(two));
    CHECK(wait_for_bytes(two, 500));
    CHECK(!sampler_remove(two));
    CHECK_SWEPT(f);
    CHECK(made_count(f.keeper) > before);
    begin_job(&aside);
    CHECK_SWEPT(f);
    end_job(&aside);
    CHECK_EQ(made_count(f.keeper), before);
}

TEST(an_opening_that_fails_or_is_cancelled_leaves_no_event) {
    SessionConfig config = clock_config("one", 499), other = clock_config("two", 499);
    SamplerOpening *opening = NULL;
    SamplerSession *two = NULL;
    Aside aside = {};
    char error[128];
    uint32_t before;
    FIXTURE(f, config);

    use_aside(f.sampler, &aside);
    before = made_count(f.keeper);
    CHECK_OK(sampler_opening_begin(f.sampler, &other, false, &opening));
    CHECK(!sampler_opening_cancel(opening));
    begin_job(&aside);
    end_job(&aside);
    CHECK_EQ(aside.n_opened, 0U);
    snprintf(other.events, sizeof(other.events), "no-such-event");
    CHECK_OK(sampler_opening_begin(f.sampler, &other, true, &opening));
    begin_job(&aside);
    end_job(&aside);
    CHECK(sampler_opening_end(opening, &two, error, sizeof(error)) < 0);
    CHECK(strstr(error, "'no-such-event'"));
    CHECK(!two);
    CHECK_EQ(made_count(f.keeper), before);
    CHECK_OK(sampler_enable(f.session));
    CHECK_SWEPT(f);
}

/* profd stops, or the session is stopped, before the main thread hears of the failure. */
TEST(a_failed_opening_can_be_cancelled_before_its_result_is_read) {
    SessionConfig config = clock_config("one", 499), other = clock_config("two", 499);
    SamplerOpening *opening = NULL;
    Aside aside = {};
    uint32_t before;
    FIXTURE(f, config);

    use_aside(f.sampler, &aside);
    before = made_count(f.keeper);
    snprintf(other.events, sizeof(other.events), "no-such-event");
    CHECK_OK(sampler_opening_begin(f.sampler, &other, true, &opening));
    begin_job(&aside);
    wait_for_job(&aside);
    CHECK(!sampler_opening_cancel(opening));
    finish_job(&aside);
    CHECK_EQ(aside.n_opened, 0U);
    CHECK_EQ(made_count(f.keeper), before);
}

static int pass(void *userdata _unused_) {
    return 0;
}

static bool hears(const Sampler *sampler) {
    struct pollfd heard = {.fd = sampler->groups_watch, .events = POLLIN};

    return poll(&heard, 1, 10000) == 1;
}

typedef struct Groups {
    char outer[CGROUP_TREE_PATH_MAX + 64], inner[CGROUP_TREE_PATH_MAX + 128];
} Groups;

static void remove_groups(Groups *groups) {
    (void)rmdir(groups->inner);
    (void)rmdir(groups->outer);
}

TEST(a_control_group_is_noticed_when_it_is_made_and_when_it_is_removed) {
    _cleanup_(remove_groups) Groups groups = {};
    _cleanup_(loop_freep) Loop *loop = NULL;
    SessionConfig config = clock_config("one", 99);
    FIXTURE(f, config);

    CHECK_OK(loop_new(&loop));
    CHECK_OK(sampler_watch(f.sampler, loop, pass, pass, NULL));
    sampler_remove(f.session);
    snprintf(config.cgroup, sizeof(config.cgroup), "profd-test-%d.slice/shop.service",
             (int)getpid());
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    if (!f.sampler->groups)
        TEST_SKIP("no control groups are mounted");
    snprintf(groups.outer, sizeof(groups.outer), "%s/profd-test-%d.slice", f.sampler->groups->mount,
             (int)getpid());
    snprintf(groups.inner, sizeof(groups.inner), "%s/shop.service", groups.outer);
    CHECK(session_lacks_group(f.session));
    if (mkdir(groups.outer, 0755) < 0)
        TEST_SKIP("no control group can be made here: %s", strerror(errno));
    CHECK(hears(f.sampler));
    CHECK(!groups_refresh(f.sampler));
    CHECK_OK(mkdir(groups.inner, 0755));
    CHECK(hears(f.sampler));
    CHECK(groups_refresh(f.sampler));
    CHECK(!session_lacks_group(f.session));
    CHECK_OK(rmdir(groups.inner));
    CHECK(hears(f.sampler));
    CHECK(groups_refresh(f.sampler));
    CHECK(session_lacks_group(f.session));
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

static int refuse_cycles(const KeeperEvent *event) {
    return load_u32(event->attr, false) == PD_TYPE_HARDWARE ? -ENOENT : 0;
}

TEST(cycles_become_the_clock_without_a_counter) {
    SessionConfig config = clock_config("one", 99);
    FIXTURE(f, config);

    f.keeper->refuse = refuse_cycles;
    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "cycles");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_FALLBACK_EVENT);
    CHECK_STREQ(sampler_describe(f.session), "cpu-clock at 99 Hz");
    CHECK_STREQ(pd_events_at(sampler_events(f.session), 0)->name, "cpu-clock");
}

TEST(auto_is_the_clock_without_a_counter_and_the_session_is_not_degraded) {
    SessionConfig config = clock_config("one", 99);
    FIXTURE(f, config);

    f.keeper->refuse = refuse_cycles;
    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "auto");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), 0U);
    CHECK_STREQ(sampler_describe(f.session), "cpu-clock at 99 Hz");
    CHECK_EQ(sampler_notes(f.session)->n, 0);
}

TEST(events_that_cannot_be_opened_are_skipped_and_noted) {
    SessionConfig config = clock_config("one", 99);
    const PlanNotes *notes;
    FIXTURE(f, config);

    f.keeper->refuse = refuse_cycles;
    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events),
             "cs,cycels,{faults,instructions},cpu-clock,cs:uk/");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_MISSING_EVENTS);
    CHECK_STREQ(sampler_describe(f.session), "cs, cpu-clock at 99 Hz");
    notes = sampler_notes(f.session);
    CHECK_EQ(notes->n, 3);
    CHECK(strstr(notes->items[0].text, "Event 'cycels' at offset 3 is not known"));
    CHECK(strstr(notes->items[1].text, "Event 'cs:uk/'"));
    CHECK(strstr(notes->items[2].text, "Event 'instructions' cannot be opened on CPU"));
    CHECK_EQ(notes->items[2].error, -ENOENT);
    CHECK_OK(sampler_enable(f.session));
    CHECK(wait_for_bytes(f.session, 500));
}

TEST(only_the_default_session_falls_back_to_its_default_event) {
    SessionConfig config = clock_config("one", 99);
    SamplerSession *session = NULL;
    FIXTURE(f, config);

    f.keeper->refuse = refuse_cycles;
    snprintf(config.events, sizeof(config.events), "cycels,instructions");
    snprintf(config.name, sizeof(config.name), "two");
    CHECK_EQ(sampler_add(f.sampler, &config, &session), -EINVAL);
    snprintf(config.name, sizeof(config.name), "default");
    CHECK_OK(sampler_add(f.sampler, &config, &session));
    CHECK_EQ(sampler_degraded(session), (unsigned)DEGRADED_MISSING_EVENTS);
    CHECK_STREQ(sampler_describe(session), "cpu-clock at 99 Hz");
    sampler_remove(session);
    /* A key of the session as a whole does not concern its events. */
    config.n_pids = 1;
    config.pids[0] = INT32_MAX;
    CHECK_EQ(sampler_add(f.sampler, &config, &session), -ESRCH);
}

TEST(a_session_that_a_user_starts_has_all_of_its_events_or_fails) {
    SessionConfig config = clock_config("one", 99);
    SamplerSession *session = NULL;
    char error[512] = "";
    FIXTURE(f, config);

    config.runtime = true;
    snprintf(config.name, sizeof(config.name), "two");
    snprintf(config.events, sizeof(config.events), "cs,cycels");
    log_keep_error(error, sizeof(error));
    CHECK_EQ(sampler_add(f.sampler, &config, &session), -EINVAL);
    log_keep_error(NULL, 0);
    CHECK(strstr(error, "did you mean 'cycles'"));
    CHECK(!session);
}

static int refuse_branches(const KeeperEvent *event) {
    PdAttr attr;

    return pd_attr_parse(&attr, (Bytes){event->attr, event->attr_size}, false) == 0 &&
                   attr.sample_type & PD_SAMPLE_BRANCH_STACK
               ? -EOPNOTSUPP
               : 0;
}

static int refuse_stacks(const KeeperEvent *event) {
    PdAttr attr;

    return pd_attr_parse(&attr, (Bytes){event->attr, event->attr_size}, false) == 0 &&
                   attr.sample_type & PD_SAMPLE_STACK_USER
               ? -ENOSYS
               : 0;
}

TEST(frame_pointers_are_used_where_the_kernel_copies_no_stacks) {
    /* clang-format off */
    static const struct { CallGraph asked; unsigned degraded; } rows[] = {
        { CALL_GRAPH_AUTO,   0                            },
        { CALL_GRAPH_UNWIND, DEGRADED_FALLBACK_CALL_GRAPH },
        { CALL_GRAPH_DWARF,  DEGRADED_FALLBACK_CALL_GRAPH },
    };
    /* clang-format on */
    SessionConfig config = clock_config("one", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    f.keeper->refuse = refuse_stacks;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_(buffer_done) Buffer mode = {};

        config.call_graph = rows[i].asked;
        config.stack_bytes = rows[i].asked == CALL_GRAPH_AUTO ? 0 : 4096;
        CHECK_OK(sampler_add(f.sampler, &config, &f.session));
        CHECK_EQ(sampler_degraded(f.session), rows[i].degraded);
        sampler_put_call_graph(f.session, &mode);
        CHECK(mode.size == 2 && memcmp(mode.data, "fp", 2) == 0);
        CHECK(!sampler_is_unwound(f.session) && !sampler_takes_stacks(f.session));
        f.session = sampler_remove(f.session);
    }
}

TEST(unsupported_call_graphs_make_the_session_degraded) {
    SessionConfig config = clock_config("one", 99);
    FIXTURE(f, config);

    f.keeper->refuse = refuse_branches;
    sampler_remove(f.session);
    config.call_graph = CALL_GRAPH_LBR;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_FALLBACK_CALL_GRAPH);
}

static int refuse_kernel(const KeeperEvent *event) {
    PdAttr attr;

    return pd_attr_parse(&attr, (Bytes){event->attr, event->attr_size}, false) == 0 &&
                   !(attr.flags & PD_ATTR_EXCLUDE_KERNEL)
               ? -EACCES
               : 0;
}

TEST(kernel_samples_are_excluded_if_they_are_not_permitted) {
    SessionConfig config = clock_config("one", 99);
    FIXTURE(f, config);

    f.keeper->refuse = refuse_kernel;
    sampler_remove(f.session);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_NO_KERNEL);
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

static int refuse_task_clock_on_cpu_1(const KeeperEvent *event) {
    return load_u64(event->attr + 8, false) == 1 && event->cpu == 1 ? -ENOENT : 0;
}

TEST(an_event_is_skipped_on_a_cpu_that_lacks_it) {
    SessionConfig config = clock_config("one", 499);
    FIXTURE(f, config);

    if (f.sampler->online.n < 2)
        TEST_SKIP("only one CPU");
    f.keeper->refuse = refuse_task_clock_on_cpu_1;
    sampler_remove(f.session);
    snprintf(config.events, sizeof(config.events), "task-clock,cpu-clock");
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, f.sampler->online.n - 1);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 1)->n_ids, f.sampler->online.n);
    CHECK_EQ(sampler_degraded(f.session), 0U);
}

static int refuse_sampling_on_cpu_1(const KeeperEvent *event) {
    bool samples = load_u64(event->attr + 16, false) > 0;

    return samples && event->cpu == 1 ? -ENOENT : 0;
}

TEST(an_online_cpu_that_could_not_be_opened_counts_as_missing) {
    SessionConfig config = clock_config("one", 499);
    FIXTURE(f, config);

    if (f.sampler->online.n < 2)
        TEST_SKIP("only one CPU");
    CHECK(!sampler_misses_cpu(f.session, 1));
    f.keeper->refuse = refuse_sampling_on_cpu_1;
    sampler_remove(f.session);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK(sampler_has_cpu(f.session, 0));
    CHECK(!sampler_misses_cpu(f.session, 0));
    CHECK(!sampler_has_cpu(f.session, 1));
    CHECK(sampler_misses_cpu(f.session, 1));
    /* Nothing is missed where nothing can be. */
    CHECK(!sampler_misses_cpu(f.session, CPU_LIST_MAX - 1));
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

static bool is_pid(const PdStamp *stamp, void *userdata) {
    return stamp->pid == (uint32_t) * (pid_t *)userdata;
}

static Samples samples_everywhere(const Fixture *f, pid_t *pid) {
    Samples all = {.sane = true};

    for (size_t i = 0; i < HEARD_CPUS; i++) {
        Samples s = read_samples(buffer_bytes(&f->heard.samples[0][i]), sampler_events(f->session),
                                 is_pid, pid);

        all.n += s.n;
        all.sane &= s.sane;
    }
    return all;
}

TEST(only_the_process_of_the_session_is_sampled) {
    pid_t child = spin_in_child();
    SessionConfig config = clock_config("one", 999);
    Samples s;
    int r;
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    config.n_pids = 1;
    config.pids[0] = (uint32_t)child;
    r = sampler_add(f.sampler, &config, &f.session);
    if (r == 0)
        r = sampler_enable(f.session);
    if (r == 0 && wait_for_bytes(f.session, 2000))
        r = sweep_all(f.sampler, UINT64_MAX, &f.heard);
    end_child(child);
    CHECK_OK(r);
    s = samples_everywhere(&f, &child);
    CHECK(s.sane);
    CHECK(s.n > 10);
}

/* As perf record -p and -t do. */
TEST(a_process_is_sampled_with_its_children_and_a_thread_alone) {
    SessionConfig config = clock_config("one", 999), thread = clock_config("two", 999);
    SamplerSession *two;
    pid_t child = spin_in_child();
    int r;
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    config.n_pids = thread.n_tids = 1;
    config.pids[0] = thread.tids[0] = (uint32_t)child;
    r = sampler_add(f.sampler, &config, &f.session);
    if (r == 0)
        r = sampler_add(f.sampler, &thread, &two);
    end_child(child);
    CHECK_OK(r);
    CHECK(pd_events_at(sampler_events(f.session), 0)->attr.flags & PD_ATTR_INHERIT);
    CHECK(!(pd_events_at(sampler_events(two), 0)->attr.flags & PD_ATTR_INHERIT));
}

TEST(missing_processes_among_several_are_accepted) {
    pid_t child = spin_in_child();
    SessionConfig config = clock_config("one", 999);
    bool samples = false;
    int r;
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    config.n_pids = 2;
    config.pids[0] = INT32_MAX;
    config.pids[1] = (uint32_t)child;
    r = sampler_add(f.sampler, &config, &f.session);
    if (r == 0)
        r = sampler_enable(f.session);
    if (r == 0)
        samples = wait_for_bytes(f.session, 1000);
    end_child(child);
    CHECK_OK(r);
    CHECK(samples);
}

static int enter_cgroup(const char *path, pid_t pid) {
    char file[PATH_MAX + 32], text[32];
    int fd, n = snprintf(text, sizeof(text), "%d", (int)pid);

    snprintf(file, sizeof(file), "%s/cgroup.procs", path);
    fd = open(file, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = (int)write(fd, text, (size_t)n);
    close(fd);
    return n < 0 ? -EIO : 0;
}

TEST(only_the_cgroup_of_the_session_is_sampled) {
    SessionConfig config = clock_config("one", 999);
    char path[PATH_MAX];
    pid_t child;
    Samples s;
    int r;
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    snprintf(config.cgroup, sizeof(config.cgroup), "profd-test-%d", (int)getpid());
    snprintf(path, sizeof(path), "%s/%s", cgroup_root(), config.cgroup);
    if (mkdir(path, 0755) < 0)
        TEST_SKIP("no cgroup can be made: %s", strerror(errno));
    child = spin_in_child();
    r = enter_cgroup(path, child);
    if (r == 0)
        r = make_sampler(f.keeper, &f.sampler);
    if (r == 0)
        r = sampler_add(f.sampler, &config, &f.session);
    if (r == 0)
        r = sampler_enable(f.session);
    if (r == 0 && wait_for_bytes(f.session, 2000))
        r = sweep_all(f.sampler, UINT64_MAX, &f.heard);
    end_child(child);
    rmdir(path);
    CHECK_OK(r);
    s = samples_everywhere(&f, &child);
    CHECK(s.sane);
    CHECK(s.n > 10);
}

/* Whether all samples that come in the next time are of this process, and some come. */
static bool samples_alone(Fixture *f, pid_t pid) {
    Samples s;

    for (size_t i = 0; i < HEARD_CPUS; i++)
        buffer_clear(&f->heard.samples[0][i]);
    if (!wait_for_bytes(f->session, 2000) || sweep_all(f->sampler, UINT64_MAX, &f->heard) < 0)
        return false;
    s = samples_everywhere(f, &pid);
    return s.sane && s.n > 10;
}

static int refresh(Fixture *f) {
    SamplerSinks sinks = sinks_to(&f->heard);
    int r = hotplug_is_due(f->sampler) ? sampler_refresh_cpus(f->sampler, &sinks) : 0;

    f->heard.in_samples = false;
    return r;
}

TEST(a_missing_cgroup_is_waited_for_and_a_replaced_one_is_followed) {
    SessionConfig config = clock_config("one", 999);
    uint64_t from_ns, to_ns;
    unsigned generation;
    char path[PATH_MAX];
    pid_t child;
    FIXTURE(f, config);

    sampler_remove(f.session);
    snprintf(config.cgroup, sizeof(config.cgroup), "profd-test-%d", (int)getpid());
    snprintf(path, sizeof(path), "%s/%s", cgroup_root(), config.cgroup);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sampler_enable(f.session));
    CHECK(sampler_is_waiting(f.session) && !sampler_group_exists(f.sampler, config.cgroup));
    CHECK_EQ(sampler_n_cpus(f.session), (size_t)0);
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, (size_t)0);
    CHECK_EQ(refresh(&f), 0);
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_ABSENT_GROUP);
    if (mkdir(path, 0755) < 0)
        TEST_SKIP("no cgroup can be made: %s", strerror(errno));
    for (unsigned round = 0; round < 2; round++) {
        child = spin_in_child();
        CHECK_OK(enter_cgroup(path, child));
        generation = sampler_generation(f.session);
        CHECK_EQ(refresh(&f), 2);
        CHECK(sampler_generation(f.session) != generation);
        CHECK(samples_alone(&f, child));
        CHECK(sampler_take_group_gap(f.session, &from_ns, &to_ns) && from_ns < to_ns);
        CHECK(!sampler_take_group_gap(f.session, &from_ns, &to_ns));
        CHECK_EQ(refresh(&f), 0);
        end_child(child);
        /* The group of the next round has another number. */
        CHECK_OK(rmdir(path));
        CHECK_OK(mkdir(path, 0755));
    }
    CHECK_OK(rmdir(path));
    CHECK_EQ(refresh(&f), 2);
    CHECK(sampler_is_waiting(f.session));
    CHECK_EQ(made_count(f.keeper), (uint32_t)f.sampler->online.n);
}

/* -- limits -- */

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

TEST(rings_of_all_sessions_stay_within_the_total) {
    SessionConfig config = clock_config("one", 99), other = clock_config("two", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};
    SamplerSession *two;
    size_t n;

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    n = f.sampler->online.n;
    f.sampler->options.buffer_total_bytes = n * (512 + 128) * 1024;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_EQ(sampler_degraded(f.session), 0U);
    CHECK_EQ(f.session->rings.rings[0]->ring.size, 512 * 1024ULL);
    CHECK_OK(sampler_add(f.sampler, &other, &two));
    CHECK_EQ(sampler_degraded(two), (unsigned)DEGRADED_SMALL_RINGS);
    CHECK_EQ(two->rings.rings[0]->ring.size, 128 * 1024ULL);
    CHECK_EQ(pd_events_at(sampler_events(two), 0)->attr.wakeup_events, 48 * 1024U);
}

static int refuse_large_rings(const KeeperEvent *event) {
    Tag tag;

    return event->ring_bytes > 64 * 1024 && tag_decode(event->tag, &tag) && tag.kind == TAG_SAMPLES
               ? -EPERM
               : 0;
}

TEST(rings_get_smaller_if_locked_memory_is_limited) {
    SessionConfig config = clock_config("one", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    f.keeper->refuse = refuse_large_rings;
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK(sampler_degraded(f.session) & DEGRADED_SMALL_RINGS);
    CHECK(f.session->rings.rings[0]->ring.size <= 64 * 1024);
    CHECK_EQ(sampler_n_cpus(f.session), f.sampler->online.n);
}

static int refuse_all_large_rings(const KeeperEvent *event) {
    return event->ring_bytes > 64 * 1024 ? -EPERM : 0;
}

static int refuse_all_rings(const KeeperEvent *event) {
    return event->ring_bytes > 0 ? -EPERM : 0;
}

TEST(rings_of_side_band_get_smaller_too) {
    SessionConfig config = clock_config("one", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};

    NEED_EVENTS(f.keeper);
    f.keeper->refuse = refuse_all_large_rings;
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    CHECK_EQ(f.sampler->side_band.rings[0]->ring.size, 64 * 1024ULL);
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    f.session = sampler_remove(f.session);
    f.keeper->refuse = refuse_all_rings;
    CHECK_EQ(sampler_add(f.sampler, &config, &f.session), -EPERM);
    CHECK_EQ(made_count(f.keeper), (uint32_t)f.sampler->online.n);
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
