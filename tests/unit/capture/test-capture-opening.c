/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>
#include <pthread.h>

#include "make-sampler.h"

/* Sessions that are opened and closed on a thread while others are swept. */

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

static int refuse_faults(const KeeperEvent *event) {
    PdAttr attr;

    return pd_attr_parse(&attr, (Bytes){event->attr, event->attr_size}, false) == 0 &&
                   attr.type == PD_TYPE_SOFTWARE && attr.config == 2
               ? -ENOENT
               : 0;
}

/* Tries once whether the session could have more of its events; returns the answer. */
static int try_once(SamplerSession *session, Aside *aside) {
    SamplerOpening *trial = NULL;
    int r;

    if (sampler_trial_begin(session, &trial) < 0)
        return -EBUSY;
    begin_job(aside);
    end_job(aside);
    r = sampler_trial_end(trial, session);
    /* Closes what the trial opened. */
    begin_job(aside);
    end_job(aside);
    return r;
}

TEST(a_trial_is_better_when_fewer_events_are_left_out) {
    /* clang-format off */
    static const struct { const char *name, *events; } rows[] = {
        { "two",     "cpu-clock,page-faults" },
        { "default", "page-faults"           }, /* the default event takes the place of the only one */
    };
    /* clang-format on */
    SessionConfig config = clock_config("one", 499);
    Aside aside = {};
    FIXTURE(f, config);

    use_aside(f.sampler, &aside);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        SessionConfig other = clock_config(rows[i].name, 499);
        SamplerSession *session = NULL;

        snprintf(other.events, sizeof(other.events), "%s", rows[i].events);
        f.keeper->refuse = refuse_faults;
        CHECK_OK(sampler_add(f.sampler, &other, &session));
        CHECK_EQ(sampler_degraded(session), (unsigned)DEGRADED_MISSING_EVENTS);
        CHECK_EQ(try_once(session, &aside), -ENOENT);
        f.keeper->refuse = NULL;
        CHECK_EQ(try_once(session, &aside), 1);
        sampler_remove(session);
        begin_job(&aside);
        end_job(&aside);
    }
}

TEST_MAIN()
