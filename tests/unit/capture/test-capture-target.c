/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <poll.h>
#include <sys/stat.h>

#include "make-sampler.h"

/* Sessions of processes, threads and control groups. */

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

TEST_MAIN()
