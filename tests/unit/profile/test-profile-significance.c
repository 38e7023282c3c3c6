/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/significance.h"

#include <math.h>

#include "test.h"
#include "util/macro.h"

/* Simulated windows: how often noise is taken for a change, and whether changes are found. */

enum { SPANS = 60, ROWS = 100, TRIALS = 300 };

static uint64_t state;

static double uniform(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15ULL;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static double poisson(double mean) {
    double limit = exp(-MIN(mean, 500.0)), product = uniform();
    double n = 0;

    while (product > limit) {
        product *= uniform();
        n++;
    }
    return n;
}

typedef struct Window {
    SignificanceSeries rows[ROWS];
} Window;

/* Rows of very different weights. With bursts, a row rests most of the time, and runs for some
 * spans in a row; its mean is the same. */
static void simulate(Window *window, double rate, bool bursts, double first_factor) {
    double all[SPANS] = {};

    for (unsigned i = 0; i < ROWS; i++) {
        double mean = rate / (1 + i) * (i == 0 ? first_factor : 1);
        unsigned left = 0;

        window->rows[i].n = SPANS;
        for (unsigned t = 0; t < SPANS; t++) {
            if (left > 0)
                left--;
            else if (uniform() < 0.125)
                left = 1 + (unsigned)(uniform() * 3);
            window->rows[i].counts[t] = poisson(bursts ? (left > 0 ? mean * 4 : 0) : mean);
            all[t] += window->rows[i].counts[t];
        }
    }
    for (unsigned i = 0; i < ROWS; i++)
        memcpy(window->rows[i].norms, all, sizeof(all));
}

static void use_rates(Window *window) {
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned t = 0; t < SPANS; t++)
            window->rows[i].norms[t] = 1;
}

/* The rows that are reported as changed, at a rate of false discoveries of 5 %. */
static unsigned reported(const Window *before, const Window *after, bool is_share,
                         bool *ret_first) {
    double p[ROWS], q[ROWS];
    unsigned n = 0;

    for (unsigned i = 0; i < ROWS; i++)
        p[i] = significance_compare(&before->rows[i], &after->rows[i], is_share).p;
    if (significance_adjust(p, ROWS, q) < 0)
        abort();
    for (unsigned i = 0; i < ROWS; i++)
        n += q[i] <= 0.05;
    *ret_first = q[0] <= 0.05;
    return n;
}

/* In how many of the trials anything was reported, though nothing had changed. */
static unsigned false_alarms(double rate, bool bursts, bool is_share) {
    static Window before, after;
    unsigned n = 0;
    bool first;

    state = 1;
    for (unsigned i = 0; i < TRIALS; i++) {
        simulate(&before, rate, bursts, 1);
        simulate(&after, rate, bursts, 1);
        if (!is_share) {
            use_rates(&before);
            use_rates(&after);
        }
        n += reported(&before, &after, is_share, &first) > 0;
    }
    printf("# %u of %u trials report something\n", n, TRIALS);
    return n;
}

/* How often a first row with `factor` times the load is reported. */
static unsigned found(double rate, bool bursts, double factor) {
    static Window before, after;
    unsigned n = 0;

    state = 2;
    for (unsigned i = 0; i < TRIALS; i++) {
        bool first;

        simulate(&before, rate, bursts, 1);
        simulate(&after, rate, bursts, factor);
        (void)reported(&before, &after, true, &first);
        n += first;
    }
    printf("# %u of %u trials find the change\n", n, TRIALS);
    return n;
}

/* 5 % of 300 are 15; a binomial count of them is above 27 once in a thousand times. */
enum { ALARMS_MAX = 27 };

TEST(independent_samples_raise_few_false_alarms) {
    CHECK(false_alarms(20, false, true) <= ALARMS_MAX);
    CHECK(false_alarms(20, false, false) <= ALARMS_MAX);
}

TEST(bursts_raise_few_false_alarms) {
    CHECK(false_alarms(20, true, true) <= ALARMS_MAX);
    CHECK(false_alarms(20, true, false) <= ALARMS_MAX);
}

TEST(few_samples_raise_few_false_alarms) {
    CHECK(false_alarms(1, false, true) <= ALARMS_MAX);
    CHECK(false_alarms(1, true, false) <= ALARMS_MAX);
}

TEST(changes_are_found) {
    CHECK(found(20, false, 1.5) > TRIALS * 9 / 10);
    /* Some six bursts in each window: a change must be large to be more than chance. */
    CHECK(found(4, true, 25) > TRIALS / 2);
}

static SignificanceSeries series(size_t n, double count, double norm) {
    SignificanceSeries s = {.n = n};

    for (size_t i = 0; i < n; i++) {
        s.counts[i] = count;
        s.norms[i] = norm;
    }
    return s;
}

/* R: 2 * pt(-t, df); 2 * pnorm(-t) */
TEST(tails_are_those_of_tables) {
    CHECK(fabs(significance_student(2.228138852, 10) - 0.05) < 1e-8);
    CHECK(fabs(significance_student(-2.228138852, 10) - 0.05) < 1e-8);
    CHECK(fabs(significance_student(12.70620474, 1) - 0.05) < 1e-8);
    CHECK(fabs(significance_student(1.959963985, INFINITY) - 0.05) < 1e-8);
    CHECK(fabs(significance_student(0, 5) - 1) < 1e-12);
    CHECK(significance_student(40, 60) < 1e-30);
    CHECK_EQ(significance_student(NAN, 5), 1);
}

TEST(a_burst_is_no_change_and_steady_load_is_one) {
    SignificanceSeries none = series(32, 0, 100), burst = none, steady = series(32, 2, 100);

    burst.counts[7] = 64;
    CHECK(significance_compare(&none, &burst, true).p > 0.05);
    CHECK(significance_compare(&none, &steady, true).p < 1e-3);
    CHECK(significance_compare(&burst, &burst, true).p == 1);
}

TEST(windows_without_samples_do_not_differ) {
    SignificanceSeries empty = series(1, 0, 0), some = series(1, 5, 10);

    CHECK_EQ(significance_compare(&empty, &empty, true).p, 1);
    CHECK_EQ(significance_compare(&empty, &some, true).p, 1);
    CHECK_EQ(significance_compare(&some, &empty, false).p, 1);
}

TEST(one_span_is_compared_by_counts_alone) {
    SignificanceSeries a = series(1, 100, 1000), b = series(1, 200, 1000);
    Significance s = significance_compare(&a, &b, true);

    CHECK(!s.is_spread_known);
    CHECK(s.p < 1e-6);
    CHECK(fabs(s.before - 0.1) < 1e-12);
    CHECK(fabs(s.after - 0.2) < 1e-12);
}

/* The example of Benjamini and Hochberg (1995), where four of fifteen hypotheses are rejected. */
TEST(many_tests_are_adjusted_for) {
    static const double p[] = {.0001, .0004, .0019, .0095, .0201, .0278, .0298, .0344,
                               .0459, .3240, .4262, .5719, .6528, .7590, 1.000};
    double q[ARRAY_SIZE(p)];
    unsigned n = 0;

    CHECK_OK(significance_adjust(p, ARRAY_SIZE(p), q));
    for (size_t i = 0; i < ARRAY_SIZE(p); i++)
        n += q[i] <= 0.05;
    CHECK_EQ(n, 4);
    CHECK(fabs(q[0] - .0015) < 1e-9);
}

TEST_MAIN()
