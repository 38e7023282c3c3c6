/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture/sampler/sampler.h"

#include <errno.h>
#include <string.h>

#include "make-sampler.h"
#include "util/log.h"

/* Rings that must share a limited amount of memory. */

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

static int refuse_as_the_keeper(const KeeperEvent *event) {
    return event->ring_bytes > 0 ? -ENOBUFS : 0;
}

TEST(the_remedy_is_that_of_the_limit_that_was_met) {
    SessionConfig config = clock_config("one", 99);
    _cleanup_(fixture_done) Fixture f = {.keeper = calloc(1, sizeof(Keeper))};
    char error[512] = "";

    NEED_EVENTS(f.keeper);
    CHECK_OK(make_sampler(f.keeper, &f.sampler));
    f.keeper->refuse = refuse_all_rings;
    log_keep_error(error, sizeof(error));
    CHECK_EQ(sampler_add(f.sampler, &config, &f.session), -EPERM);
    CHECK(strstr(error, "raise LimitMEMLOCK="));
    f.keeper->refuse = refuse_as_the_keeper;
    error[0] = '\0';
    log_keep_error(error, sizeof(error));
    CHECK_EQ(sampler_add(f.sampler, &config, &f.session), -ENOBUFS);
    log_keep_error(NULL, 0);
    CHECK(strstr(error, "lower BufferSize= or MaxBufferTotal="));
    CHECK(!strstr(error, "LimitMEMLOCK"));
}

TEST_MAIN()
