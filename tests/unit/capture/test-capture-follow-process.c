/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "make-sampler.h"

/*
 * Following processes where a keeper refuses whole CPUs. This process is the keeper's too, and so
 * the one whose events bring the rings.
 */

typedef struct Births {
    uint32_t pid, ppid;
    uint64_t forked_ns;
    unsigned n_joined;
} Births;

static int refuse_cpus(const KeeperEvent *event) {
    return event->pid < 0 ? -EACCES : 0;
}

static int refuse_kernel(const KeeperEvent *event) {
    PdAttr attr;
    int r = pd_attr_parse(&attr, (Bytes){.data = event->attr, .size = event->attr_size}, false);

    if (r < 0)
        return r;
    return event->pid < 0 || !(attr.flags & PD_ATTR_EXCLUDE_KERNEL) ? -EACCES : 0;
}

static int error_of_others; /* than this process */

static int refuse_others(const KeeperEvent *event) {
    return event->pid < 0 ? -EACCES : event->pid != getpid() ? error_of_others : 0;
}

static int refuse_all(const KeeperEvent *event _unused_) {
    return -EACCES;
}

static int make_own(Keeper *keeper, Sampler **ret) {
    return sampler_new(&(SamplerOptions){.keeper = keeper,
                                         .buffer_total_bytes = 64 << 20,
                                         .keeper_pid = (uint32_t)getpid()},
                       ret);
}

static uint64_t forked_ns(void *userdata, uint32_t pid, uint32_t *ret_ppid) {
    const Births *births = userdata;

    *ret_ppid = births->ppid;
    return pid == births->pid ? births->forked_ns : 0;
}

static int on_followed(void *userdata, uint32_t pid _unused_) {
    ((Births *)userdata)->n_joined++;
    return 0;
}

/* Passes a list of these processes, all of which began long ago. */
static int look(Sampler *sampler, Births *births, const uint32_t *pids, size_t n) {
    uint64_t starts_ns[8];

    for (size_t i = 0; i < n; i++)
        starts_ns[i] = pids[i];
    return sampler_follow(sampler, &(SamplerProcesses){.pids = pids,
                                                       .starts_ns = starts_ns,
                                                       .n = n,
                                                       .forked_ns = forked_ns,
                                                       .on_followed = on_followed,
                                                       .userdata = births});
}

static size_t counters_of(const RingSet *set, pid_t pid) {
    size_t n = 0;

    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->rings[i]->n_counters; k++)
            n += set->rings[i]->counters[k].tid == pid;
    return n;
}

static void end_childp(pid_t *pid) {
    if (*pid > 0)
        end_child(*pid);
}

static bool is_of_another(const PdStamp *stamp, void *userdata) {
    return stamp->pid != *(uint32_t *)userdata;
}

/* Whether samples of that process were delivered. */
static bool was_heard(const Fixture *f, uint32_t pid) {
    const PdEvents *events = sampler_events(f->session);
    bool heard = false;

    for (size_t cpu = 0; cpu < HEARD_CPUS; cpu++) {
        Bytes bytes = buffer_bytes(&f->heard.samples[0][cpu]);

        heard |= read_samples(bytes, events, NULL, NULL).sane &&
                 !read_samples(bytes, events, is_of_another, &pid).sane;
    }
    return heard;
}

/* Starts a child that spins, tells of it and ends; once it is continued. */
static pid_t spin_in_grandchild(int to_parent) {
    pid_t child = fork(), grandchild;

    if (child == 0) {
        raise(SIGSTOP);
        grandchild = spin_in_child();
        (void)!write(to_parent, &grandchild, sizeof(grandchild));
        _exit(0);
    }
    waitpid(child, NULL, WUNTRACED);
    return child;
}

#define OWN_FIXTURE(f, config, how)                                                                \
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};                     \
    NEED_EVENTS(f.keeper);                                                                         \
    f.keeper->refuse = (how);                                                                      \
    CHECK_OK(make_own(f.keeper, &f.sampler));                                                      \
    CHECK_OK(sampler_add(f.sampler, &(config), &f.session))

TEST(user_without_the_right_to_record_cpus_records_processes) {
    SessionConfig config = clock_config("default", 999);
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK(sampler_follows_processes(f.sampler));
    CHECK(sampler_sees_kernel(f.sampler));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_OWN_PROCESSES);
    for (size_t i = 0; i < f.session->rings.n; i++)
        CHECK_EQ(f.session->rings.rings[i]->counters[0].tid, getpid());
    CHECK(pd_events_at(sampler_events(f.session), 0)->attr.flags & PD_ATTR_INHERIT);
}

TEST(user_without_the_right_to_record_the_kernel_excludes_it) {
    SessionConfig config = clock_config("default", 999);
    OWN_FIXTURE(f, config, refuse_kernel);

    CHECK(sampler_follows_processes(f.sampler));
    CHECK(!sampler_sees_kernel(f.sampler));
    CHECK_EQ(sampler_degraded(f.session), (unsigned)(DEGRADED_OWN_PROCESSES | DEGRADED_NO_KERNEL));
}

TEST(user_who_may_record_nothing_is_refused) {
    Keeper keeper = {.refuse = refuse_all};
    Sampler *sampler;

    CHECK_EQ(make_own(&keeper, &sampler), -EACCES);
}

TEST(user_who_may_record_cpus_follows_no_processes) {
    SessionConfig config = clock_config("default", 999);
    OWN_FIXTURE(f, config, NULL);

    CHECK(!sampler_follows_processes(f.sampler));
    CHECK_EQ(sampler_degraded(f.session), 0U);
}

TEST(a_session_with_another_target_follows_no_processes) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child;

    config.pids[config.n_pids++] = (uint32_t)getpid();
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_EQ(sampler_degraded(f.session), 0U);
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(counters_of(&f.session->rings, child), 0U);
    CHECK(counters_of(&f.sampler->side_band, child) > 0);
}

TEST(samples_of_all_processes_have_the_ids_of_the_first) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child;
    size_t n_samples = 0;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(births.n_joined, 1U);
    sampler_release(f.sampler, pid);
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK_EQ(pd_events_at(sampler_events(f.session), 0)->n_ids, f.session->rings.n);
    for (size_t cpu = 0; cpu < HEARD_CPUS; cpu++) {
        Samples samples = read_samples(buffer_bytes(&f.heard.samples[0][cpu]),
                                       sampler_events(f.session), NULL, NULL);

        CHECK(samples.sane);
        n_samples += samples.n;
    }
    CHECK(n_samples > 5);
}

TEST(samples_of_a_process_begin_when_it_is_released) {
    SessionConfig config = clock_config("default", 999);
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child;
    Births births = {};
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    sleep_ms(50);
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(!was_heard(&f, pid));
    sampler_release(f.sampler, pid);
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(was_heard(&f, pid));
}

/* Nobody could read the parent before it ended. */
TEST(samples_of_a_child_begin_when_its_parent_is_gone) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    int to_parent[2];
    pid_t child, grandchild = 0;
    uint32_t pid;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(pipe(to_parent));
    child = spin_in_grandchild(to_parent[1]);
    pid = (uint32_t)child;
    CHECK_OK(sampler_enable(f.session));
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    kill(child, SIGCONT);
    CHECK_EQ(read(to_parent[0], &grandchild, sizeof(grandchild)), (ssize_t)sizeof(grandchild));
    waitpid(child, NULL, 0);
    CHECK_OK(look(f.sampler, &births, NULL, 0));
    CHECK(wait_for_bytes(f.session, 2000));
    CHECK_OK(sweep_all(f.sampler, UINT64_MAX, &f.heard));
    CHECK(was_heard(&f, (uint32_t)grandchild));
    kill(grandchild, SIGKILL);
    close(to_parent[0]);
    close(to_parent[1]);
}

TEST(a_process_with_inherited_events_gets_no_others) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    _cleanup_(end_childp) pid_t other = spin_in_child();
    uint32_t pids[] = {(uint32_t)child, (uint32_t)other};
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(look(f.sampler, &births, pids, 1));
    births = (Births){.pid = pids[1], .ppid = pids[0], .forked_ns = clock_monotonic_ns()};
    CHECK_OK(look(f.sampler, &births, pids, 2));
    CHECK_EQ(counters_of(&f.session->rings, other), 0U);
    /* Its parent was not followed at that time. */
    births.forked_ns = 1;
    CHECK_OK(look(f.sampler, &births, pids, 2));
    CHECK_EQ(counters_of(&f.session->rings, other), f.session->rings.n);
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
}

TEST(events_are_closed_when_no_process_has_them_any_more) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    int to_parent[2];
    pid_t child, grandchild = 0;
    uint32_t pid, n_before;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(pipe(to_parent));
    n_before = made_count(f.keeper);
    child = spin_in_grandchild(to_parent[1]);
    pid = (uint32_t)child;
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
    kill(child, SIGCONT);
    CHECK_EQ(read(to_parent[0], &grandchild, sizeof(grandchild)), (ssize_t)sizeof(grandchild));
    waitpid(child, NULL, 0);
    /* Its child still has them. */
    CHECK_OK(look(f.sampler, &births, NULL, 0));
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
    kill(grandchild, SIGKILL);
    for (unsigned i = 0; i < 1000 && made_count(f.keeper) > n_before; i++) {
        sleep_ms(10);
        CHECK_OK(look(f.sampler, &births, NULL, 0));
    }
    CHECK_EQ(made_count(f.keeper), n_before);
    close(to_parent[0]);
    close(to_parent[1]);
}

static int count_calls(void *userdata) {
    (*(unsigned *)userdata)++;
    return 0;
}

TEST(a_later_session_follows_all_processes_again) {
    SessionConfig config = clock_config("default", 999), later = clock_config("later", 99);
    Births births = {};
    unsigned n_wanted = 0;
    _cleanup_(end_childp) pid_t child = spin_in_child();
    _cleanup_(end_childp) pid_t other = spin_in_child();
    uint32_t pids[] = {(uint32_t)child, (uint32_t)other};
    SamplerSession *session;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(look(f.sampler, &births, pids, 1));
    births = (Births){.pid = pids[1], .ppid = pids[0], .forked_ns = clock_monotonic_ns()};
    CHECK_OK(look(f.sampler, &births, pids, 2));
    sampler_watch_follow(f.sampler, count_calls, &n_wanted);
    CHECK_OK(sampler_add(f.sampler, &later, &session));
    CHECK_EQ(n_wanted, 1U);
    CHECK_OK(look(f.sampler, &births, pids, 2));
    /* It inherited events of the first session and has none of this one. */
    CHECK_EQ(counters_of(&f.session->rings, other), 0U);
    CHECK_EQ(counters_of(&session->rings, other), session->rings.n);
    CHECK_EQ(counters_of(&session->rings, child), session->rings.n);
    CHECK_EQ(births.n_joined, 0U);
}

TEST(data_mappings_are_followed_too_while_a_session_samples_stacks) {
    SessionConfig config = clock_config("default", 99), stacks = clock_config("stacks", 99);
    Births births = {};
    unsigned n_wanted = 0;
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child, n_before;
    SamplerSession *session;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(births.n_joined, 1U);
    n_before = made_count(f.keeper);
    sampler_watch_follow(f.sampler, count_calls, &n_wanted);
    stacks.call_graph = CALL_GRAPH_DWARF;
    stacks.stack_bytes = 1024;
    CHECK_OK(sampler_add(f.sampler, &stacks, &session));
    CHECK(n_wanted > 0);
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(counters_of(&f.sampler->data, child), f.sampler->data.n);
    CHECK_EQ(f.sampler->data.n, f.sampler->side_band.n);
    CHECK_EQ(births.n_joined, 2U);
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(births.n_joined, 2U);
    CHECK_EQ(counters_of(&f.sampler->data, child), f.sampler->data.n);
    sampler_remove(session);
    CHECK_EQ(made_count(f.keeper), n_before);
}

TEST(the_next_recorder_opens_nothing_twice) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    _cleanup_(end_childp) pid_t old = spin_in_child();
    uint32_t pids[] = {(uint32_t)child, (uint32_t)old}, n_before;
    OWN_FIXTURE(f, config, refuse_cpus);

    CHECK_OK(look(f.sampler, &births, pids, 1));
    n_before = made_count(f.keeper);
    f.sampler = sampler_free(f.sampler);
    CHECK_OK(make_own(f.keeper, &f.sampler));
    CHECK_OK(sampler_add(f.sampler, &config, &f.session));
    sampler_forget_rest(f.sampler);
    CHECK(sampler_was_taken_over(f.session));
    CHECK_EQ(made_count(f.keeper), n_before);
    /* It is not a known child, but it is older than the events. */
    CHECK_OK(look(f.sampler, &births, pids, 2));
    CHECK_EQ(made_count(f.keeper), n_before);
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
}

TEST(a_process_that_may_not_be_inspected_is_skipped) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child, n_before;
    OWN_FIXTURE(f, config, refuse_others);

    error_of_others = -EACCES;
    n_before = made_count(f.keeper);
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(births.n_joined, 0U);
    CHECK_EQ(made_count(f.keeper), n_before);
    CHECK_EQ(sampler_degraded(f.session), (unsigned)DEGRADED_OWN_PROCESSES);
}

TEST(out_of_memory_leaves_no_event_of_a_process_open) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child, n_before;
    OWN_FIXTURE(f, config, refuse_others);

    error_of_others = -ENOMEM;
    n_before = made_count(f.keeper);
    CHECK_EQ(look(f.sampler, &births, &pid, 1), -ENOMEM);
    CHECK_EQ(births.n_joined, 0U);
    CHECK_EQ(made_count(f.keeper), n_before);
    CHECK_EQ(counters_of(&f.sampler->side_band, child), 0U);
    error_of_others = 0;
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(counters_of(&f.session->rings, child), f.session->rings.n);
}

TEST(too_few_descriptors_skip_some_processes) {
    SessionConfig config = clock_config("default", 999);
    Births births = {};
    _cleanup_(end_childp) pid_t child = spin_in_child();
    uint32_t pid = (uint32_t)child;
    OWN_FIXTURE(f, config, refuse_others);

    error_of_others = -EMFILE;
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK_EQ(counters_of(&f.sampler->side_band, child), 0U);
    CHECK(sampler_degraded(f.session) & DEGRADED_PARTIAL_PROCESSES);
    error_of_others = 0;
    CHECK_OK(look(f.sampler, &births, &pid, 1));
    CHECK(counters_of(&f.sampler->side_band, child) > 0);
    CHECK(!(sampler_degraded(f.session) & DEGRADED_PARTIAL_PROCESSES));
}

TEST_MAIN()
