/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>

#include "make-sampler.h"
#include "util/log.h"

/* Events that the kernel refuses, on some CPUs or on all: what is recorded in their place. */

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

TEST_MAIN()
