/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/coverage.h"

#include <errno.h>
#include <string.h>

#include "perfdata/feature/environment.h"
#include "perfdata/writer/encode.h"
#include "test.h"

/* Lists of gaps, and the feature that carries them. */

#define S 1000000000ULL

static int add(PdCoverage *coverage, uint64_t from_s, uint64_t to_s, uint32_t cpu,
               PdGapReason reason) {
    return pd_coverage_add_gap(
        coverage, &(PdGap){.from_ns = from_s * S, .to_ns = to_s * S, .cpu = cpu, .reason = reason});
}

static bool is_gap(const PdGap *gap, uint64_t from_s, uint64_t to_s, uint32_t cpu,
                   PdGapReason reason) {
    return gap->from_ns == from_s * S && gap->to_ns == to_s * S && gap->cpu == cpu &&
           gap->reason == reason;
}

TEST(every_reason_has_a_name_of_its_own) {
    PdGapReason reason = PD_GAP_REASONS;

    for (unsigned i = 0; i < PD_GAP_REASONS; i++) {
        CHECK(pd_gap_reason_text((PdGapReason)i) && pd_gap_reason_name((PdGapReason)i));
        CHECK_OK(pd_gap_reason_from_name(pd_gap_reason_name((PdGapReason)i), &reason));
        CHECK_EQ(reason, i);
    }
    CHECK_EQ(pd_gap_reason_from_name("nothing", &reason), -EINVAL);
}

TEST(adjacent_gaps_of_one_reason_and_cpu_are_merged) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 100 * S};

    CHECK_OK(add(&c, 30, 40, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(add(&c, 10, 20, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(add(&c, 20, 30, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 10, 40, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(add(&c, 40, 50, PD_ALL_CPUS, PD_GAP_STOPPED));
    CHECK_OK(add(&c, 5, 10, 3, PD_GAP_PAUSED));
    CHECK_EQ(c.n_gaps, 3);
    CHECK(is_gap(&c.gaps[0], 5, 10, 3, PD_GAP_PAUSED));
    CHECK(is_gap(&c.gaps[2], 40, 50, PD_ALL_CPUS, PD_GAP_STOPPED));
    CHECK_EQ(pd_coverage_recorded_ns(&c), (100 - 5 - 40) * S);
    CHECK_EQ(pd_coverage_recorded_on_any_ns(&c, 0, 100 * S), (100 - 40) * S);
    CHECK_EQ(pd_coverage_recorded_on_any_ns(&c, 45 * S, 60 * S), 10 * S);
}

TEST(an_open_gap_is_closed_by_the_next_of_its_kind) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 100 * S};
    const PdGap open = {
        .from_ns = 60 * S, .to_ns = PD_GAP_OPEN, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED};

    CHECK_OK(pd_coverage_add_gap(&c, &open));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 60 * S);
    CHECK_OK(add(&c, 60, 70, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 60, 70, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 90 * S);
}

TEST(losses_within_a_second_of_each_other_are_one_gap) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 100 * S};

    CHECK_OK(add(&c, 10, 11, 1, PD_GAP_LOST));
    CHECK_OK(add(&c, 12, 13, 1, PD_GAP_LOST));
    CHECK_EQ(c.n_gaps, 1);
    CHECK(is_gap(&c.gaps[0], 10, 13, 1, PD_GAP_LOST));
    CHECK_OK(add(&c, 15, 16, 1, PD_GAP_LOST));
    CHECK_OK(add(&c, 12, 13, 2, PD_GAP_LOST));
    CHECK_EQ(c.n_gaps, 3);
    /* At the end of time nothing overflows. */
    CHECK_OK(pd_coverage_add_gap(
        &c, &(PdGap){.from_ns = 20 * S, .to_ns = PD_GAP_OPEN, .cpu = 1, .reason = PD_GAP_LOST}));
    CHECK_OK(add(&c, 30, 31, 1, PD_GAP_LOST));
    CHECK_EQ(c.n_gaps, 4);
}

TEST(an_offline_cpu_is_no_loss_of_coverage_and_a_failed_cpu_is) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 10 * S};

    CHECK_OK(add(&c, 0, 10, 1, PD_GAP_OFFLINE));
    CHECK(pd_coverage_is_whole(&c));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 10 * S);
    CHECK_OK(add(&c, 2, 5, 2, PD_GAP_FAILED));
    CHECK(!pd_coverage_is_whole(&c));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 7 * S);
}

TEST(a_long_list_of_gaps_is_bounded_and_never_claims_too_much) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 100000 * S};
    uint64_t recorded = c.to_ns;

    for (uint64_t i = 0; i < 4 * PD_GAPS_MAX; i++) {
        uint64_t from = i * 7919 % 90000 + 1;

        CHECK_OK(add(&c, from, from + 1, (uint32_t)(i % 3), (PdGapReason)(i % 3)));
        CHECK(c.n_gaps <= PD_GAPS_MAX);
        CHECK(pd_coverage_recorded_ns(&c) <= recorded);
        recorded = pd_coverage_recorded_ns(&c);
    }
    CHECK(recorded <= c.to_ns - 4 * PD_GAPS_MAX * S / 2);
    for (size_t i = 1; i < c.n_gaps; i++)
        CHECK(c.gaps[i - 1].from_ns <= c.gaps[i].from_ns);
    pd_coverage_thin(&c, 1);
    CHECK_EQ(c.n_gaps, 1);
    CHECK(pd_coverage_recorded_ns(&c) <= recorded);
}

TEST(short_pauses_while_a_cpu_is_offline_stay_short) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.to_ns = 600 * S};

    CHECK_OK(add(&c, 0, 600, 3, PD_GAP_OFFLINE));
    for (uint64_t i = 0; i < 4; i++)
        CHECK_OK(add(&c, 100 + 100 * i, 101 + 100 * i, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(pd_coverage_recorded_ns(&c), 596 * S);
    pd_coverage_thin(&c, 4);
    CHECK_EQ(c.n_gaps, 4);
    CHECK_EQ(pd_coverage_recorded_ns(&c), 596 * S);
    for (uint64_t i = 0; i < PD_GAPS_MAX - 4; i++)
        CHECK_OK(add(&c, i, 600, (uint32_t)i + 4, PD_GAP_OFFLINE));
    CHECK_EQ(c.n_gaps, PD_GAPS_MAX);
    CHECK_OK(add(&c, 550, 551, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(c.n_gaps, PD_GAPS_MAX);
    CHECK_EQ(pd_coverage_recorded_ns(&c), 595 * S);
}

TEST(gap_outside_of_the_span_is_cut) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.from_ns = 10 * S, .to_ns = 20 * S};

    CHECK_OK(add(&c, 0, 5, PD_ALL_CPUS, PD_GAP_DOWN));
    CHECK_OK(add(&c, 5, 12, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(add(&c, 18, 30, 1, PD_GAP_LOST));
    CHECK_OK(add(&c, 25, 30, PD_ALL_CPUS, PD_GAP_STOPPED));
    pd_coverage_clip(&c);
    CHECK_EQ(c.n_gaps, 2);
    CHECK(is_gap(&c.gaps[0], 10, 12, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK(is_gap(&c.gaps[1], 18, 20, 1, PD_GAP_LOST));
    c.to_ns = 0;
    pd_coverage_clip(&c);
    CHECK_EQ(c.to_ns, c.from_ns);
    CHECK_EQ(c.n_gaps, 0);
}

TEST(consecutive_recordings_cover_the_time_of_all) {
    _cleanup_(pd_coverage_done) PdCoverage a = {.from_ns = 20 * S, .to_ns = 30 * S},
                                           b = {.from_ns = 10 * S, .to_ns = 20 * S},
                                           c = {.from_ns = 40 * S, .to_ns = 50 * S}, all = {};
    const PdCoverage *const list[] = {&a, &c, &b};

    pd_coverage_add_cpu(&a, 0);
    pd_coverage_add_cpu(&b, 70);
    CHECK_OK(add(&b, 12, 13, 0, PD_GAP_LOST));
    CHECK_OK(pd_coverage_unite(list, 3, &all));
    CHECK_EQ(all.from_ns, 10 * S);
    CHECK_EQ(all.to_ns, 50 * S);
    CHECK_EQ(all.n_gaps, 2);
    CHECK(is_gap(&all.gaps[0], 12, 13, 0, PD_GAP_LOST));
    CHECK(is_gap(&all.gaps[1], 30, 40, PD_ALL_CPUS, PD_GAP_UNKNOWN));
    CHECK(pd_coverage_has_cpu(&all, 0) && pd_coverage_has_cpu(&all, 70));
    CHECK_EQ(pd_coverage_recorded_ns(&all), 29 * S);
}

TEST(simultaneous_recordings_keep_the_gaps_of_each) {
    _cleanup_(pd_coverage_done) PdCoverage a = {.from_ns = 10 * S, .to_ns = 30 * S},
                                           b = {.from_ns = 10 * S, .to_ns = 20 * S}, all = {};
    const PdCoverage *const list[] = {&a, &b, &b};

    CHECK_OK(add(&a, 12, 14, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(add(&b, 13, 15, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(pd_coverage_unite(list, 3, &all));
    CHECK_EQ(all.to_ns, 30 * S);
    CHECK_EQ(all.n_gaps, 1);
    CHECK(is_gap(&all.gaps[0], 12, 15, PD_ALL_CPUS, PD_GAP_PAUSED));
}

static int read_feature(Bytes body, bool swap, PdEnvironment **ret) {
    int r = pd_environment_new(ret);

    return r < 0 ? r : pd_environment_read(*ret, PD_FEATURE_PROFD_COVERAGE, body, swap);
}

TEST(the_feature_is_read_back_as_written_in_both_byte_orders) {
    for (unsigned swap = 0; swap < 2; swap++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
        _cleanup_(pd_coverage_done) PdCoverage c = {.from_ns = 10 * S, .to_ns = 20 * S};
        _cleanup_(buffer_done) Buffer body = {};

        pd_coverage_add_cpu(&c, 0);
        pd_coverage_add_cpu(&c, 1000);
        CHECK_OK(add(&c, 12, 13, PD_ALL_CPUS, PD_GAP_RELOADED));
        CHECK_OK(add(&c, 15, 16, 1000, PD_GAP_FAILED));
        CHECK_OK(pd_encode_coverage(&body, &c, swap));
        CHECK_OK(read_feature(buffer_bytes(&body), swap, &env));
        CHECK(env->has[PD_FEATURE_PROFD_COVERAGE]);
        CHECK_EQ(env->coverage.from_ns, c.from_ns);
        CHECK_EQ(env->coverage.to_ns, c.to_ns);
        CHECK(memcmp(env->coverage.cpus, c.cpus, sizeof(c.cpus)) == 0);
        CHECK_EQ(env->coverage.n_gaps, 2);
        CHECK(is_gap(&env->coverage.gaps[0], 12, 13, PD_ALL_CPUS, PD_GAP_RELOADED));
        CHECK(is_gap(&env->coverage.gaps[1], 15, 16, 1000, PD_GAP_FAILED));
    }
}

/* version, n_words, from, to, words, n_gaps, gaps. */
static void put_feature(Buffer *b, uint32_t version, uint32_t n_words, uint64_t from, uint64_t to,
                        uint32_t n_gaps) {
    buffer_u32(b, version, false);
    buffer_u32(b, n_words, false);
    buffer_u64(b, from, false);
    buffer_u64(b, to, false);
    for (uint32_t i = 0; i < n_words && i < 4; i++)
        buffer_u64(b, 1, false);
    buffer_u32(b, n_gaps, false);
}

static void put_gap(Buffer *b, uint64_t from, uint64_t to, uint32_t reason) {
    buffer_u64(b, from, false);
    buffer_u64(b, to, false);
    buffer_u32(b, PD_ALL_CPUS, false);
    buffer_u32(b, reason, false);
}

static int read_hostile(uint32_t version, uint32_t n_words, uint64_t from, uint64_t to,
                        uint32_t n_gaps, uint64_t gap_from, uint64_t gap_to, uint32_t reason,
                        PdGapReason *ret_reason) {
    _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;
    _cleanup_(buffer_done) Buffer body = {};
    int r;

    put_feature(&body, version, n_words, from, to, n_gaps);
    put_gap(&body, gap_from, gap_to, reason);
    r = read_feature(buffer_bytes(&body), false, &env);
    if (r == 0)
        *ret_reason = env->coverage.gaps[0].reason;
    else if (env->has[PD_FEATURE_PROFD_COVERAGE] || env->coverage.n_gaps > 0)
        return -ENOTRECOVERABLE;
    return r;
}

TEST(another_clock_shifts_all_times) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.from_ns = 10 * S, .to_ns = 50 * S};

    CHECK_OK(pd_coverage_add_gap(
        &c,
        &(PdGap){.from_ns = 20 * S, .to_ns = 30 * S, .cpu = PD_ALL_CPUS, .reason = PD_GAP_PAUSED}));
    CHECK_OK(pd_coverage_shift(&c, 1000 * S));
    CHECK_EQ(c.from_ns, 1010 * S);
    CHECK_EQ(c.to_ns, 1050 * S);
    CHECK(is_gap(&c.gaps[0], 1020, 1030, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(pd_coverage_shift(&c, -1005 * S));
    CHECK_EQ(c.from_ns, 5 * S);
    CHECK(is_gap(&c.gaps[0], 15, 25, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_EQ(pd_coverage_shift(&c, -10 * S), -ERANGE);
}

TEST(a_hostile_feature_is_refused) {
    PdGapReason reason = PD_GAP_LOST;

    CHECK_OK(read_hostile(1, 1, 10, 20, 1, 12, 13, PD_GAP_PAUSED, &reason));
    CHECK_EQ(reason, PD_GAP_PAUSED);
    /* One of a later profd. */
    CHECK_OK(read_hostile(1, 1, 10, 20, 1, 12, 13, 1000, &reason));
    CHECK_EQ(reason, PD_GAP_UNKNOWN);
    CHECK_EQ(read_hostile(2, 1, 10, 20, 1, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, UINT32_MAX, 10, 20, 1, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, PD_COVERAGE_WORDS_MAX + 1, 10, 20, 1, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, 1, 20, 10, 1, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, 1, 10, 20, 1, 13, 12, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, 1, 10, 20, 2, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, 1, 10, 20, UINT32_MAX, 12, 13, 0, &reason), -EBADMSG);
    CHECK_EQ(read_hostile(1, 1, 10, 20, PD_GAPS_MAX + 1, 12, 13, 0, &reason), -EBADMSG);
}

TEST(a_truncated_feature_is_refused) {
    _cleanup_(pd_coverage_done) PdCoverage c = {.from_ns = 10 * S, .to_ns = 20 * S};
    _cleanup_(buffer_done) Buffer body = {};

    pd_coverage_add_cpu(&c, 63);
    CHECK_OK(add(&c, 12, 13, PD_ALL_CPUS, PD_GAP_PAUSED));
    CHECK_OK(pd_encode_coverage(&body, &c, false));
    for (size_t n = 0; n < body.size; n++) {
        _cleanup_(pd_environment_freep) PdEnvironment *env = NULL;

        CHECK_EQ(read_feature((Bytes){.data = body.data, .size = n}, false, &env), -EBADMSG);
    }
}

TEST_MAIN()
