/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "profile/diff/significance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "util/macro.h"

/*
 * A test of two proportions (or rates), made wider by the dispersion: Pearson's statistic of each
 * series against its own ratio, for each degree of freedom, is 1 for independent samples and more
 * for bursts. It is an estimate itself, so the quantile is that of Student's distribution. A series
 * without counts says nothing of the dispersion. Where there are too few spans, counts alone
 * decide.
 */

enum {
    SPANS_MIN = 8,      /* of a series, for its dispersion */
    SCALES = 4,         /* spans are joined by 1, 2, 4, 8 */
    LOGARITHM_MIN = 20, /* samples of a row, and of others */
    FRACTION_MAX = 300, /* terms of the continued fraction */
};

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double significance_fraction(double x, double a, double b) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (int m = 1; m <= FRACTION_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
               odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), step;

        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        h *= d * c;
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-13)
            break;
    }
    return h;
}

static double significance_beta(double x, double a, double b) {
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * significance_fraction(x, a, b) / a
                                     : 1 - front * significance_fraction(1 - x, b, a) / b;
}

double significance_student(double t, double freedom) {
    if (isnan(t))
        return 1;
    if (isinf(freedom))
        return erfc(fabs(t) / sqrt(2));
    return significance_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

typedef struct SeriesSum {
    double count, norm;
} SeriesSum;

static SeriesSum significance_sum(const SignificanceSeries *series) {
    SeriesSum sum = {};

    for (size_t i = 0; i < series->n; i++) {
        sum.count += series->counts[i];
        sum.norm += series->norms[i];
    }
    return sum;
}

static double significance_ratio(SeriesSum sum) {
    return sum.norm > 0 ? sum.count / sum.norm : 0;
}

/* The variance of a count with a norm of 1, if samples are independent. */
static double significance_variance(double ratio, bool is_share) {
    return is_share ? ratio * (1 - MIN(ratio, 1.0)) : ratio;
}

/* Adds Pearson's statistic of the series, whose spans are joined by `step`. */
static void significance_disperse(const SignificanceSeries *series, bool is_share, size_t step,
                                  double *statistic, double *freedom) {
    double ratio = significance_ratio(significance_sum(series)),
           variance = significance_variance(ratio, is_share), sum = 0;
    unsigned n = 0;

    if (variance <= 0)
        return;
    for (size_t i = 0; i < series->n; i += step) {
        SeriesSum joined = {};

        for (size_t k = i; k < i + step && k < series->n; k++) {
            joined.count += series->counts[k];
            joined.norm += series->norms[k];
        }
        if (joined.norm <= 0)
            continue;
        sum += (joined.count - ratio * joined.norm) * (joined.count - ratio * joined.norm) /
               (variance * joined.norm);
        n++;
    }
    if (n < 2)
        return;
    *statistic += sum;
    *freedom += n - 1;
}

/* What is known of one side at one scale. */
typedef struct ScaledSide {
    SeriesSum sum;
    double ratio;
    double statistic, freedom;
    double dispersion; /* at least 1 */
} ScaledSide;

static ScaledSide significance_scale(const SignificanceSeries *series, bool is_share, size_t step) {
    ScaledSide side = {.sum = significance_sum(series), .dispersion = 1};

    side.ratio = significance_ratio(side.sum);
    if (step > 0)
        significance_disperse(series, is_share, step, &side.statistic, &side.freedom);
    if (side.freedom > 0)
        side.dispersion = MAX(side.statistic / side.freedom, 1.0);
    return side;
}

/* Whether there is enough of it, and of the rest, for the logarithm of the ratio. */
static bool significance_has_logarithm(const ScaledSide *side, bool is_share) {
    return side->sum.count >= LOGARITHM_MIN &&
           (!is_share || side->sum.norm - side->sum.count >= LOGARITHM_MIN);
}

/* The logarithm of a rate, or of the odds of a share, and its variance. */
static double significance_logarithm(const ScaledSide *side, bool is_share, double *ret_variance) {
    *ret_variance = side->dispersion / side->sum.count;
    if (!is_share)
        return log(side->ratio);
    *ret_variance /= 1 - side->ratio;
    return log(side->ratio / (1 - side->ratio));
}

/* Bursts spread in proportion to the load, so load is compared by its logarithm; the degrees of
 * freedom are Welch's. */
static double significance_by_logarithm(const ScaledSide *a, const ScaledSide *b, bool is_share) {
    double v, w, x = significance_logarithm(a, is_share, &v),
                 y = significance_logarithm(b, is_share, &w), freedom = INFINITY;

    if (a->freedom > 0 && b->freedom > 0)
        freedom = (v + w) * (v + w) / (v * v / a->freedom + w * w / b->freedom);
    return significance_student((y - x) / sqrt(v + w), freedom);
}

/* The standard error of the difference of ratios that are equal in truth. */
static double significance_error(const ScaledSide *a, const ScaledSide *b, bool is_share,
                                 double *ret_freedom) {
    SeriesSum both = {.count = a->sum.count + b->sum.count, .norm = a->sum.norm + b->sum.norm};
    double dispersion = 1;

    *ret_freedom = INFINITY;
    if (a->freedom + b->freedom > 0) {
        *ret_freedom = a->freedom + b->freedom;
        dispersion = MAX((a->statistic + b->statistic) / *ret_freedom, 1.0);
    }
    return sqrt(dispersion * significance_variance(significance_ratio(both), is_share) *
                (1 / a->sum.norm + 1 / b->sum.norm));
}

/* How likely a difference as large as theirs is. */
static double significance_at_scale(const SignificanceSeries *before,
                                    const SignificanceSeries *after, bool is_share, size_t step,
                                    double *error) {
    ScaledSide a = significance_scale(before, is_share, step),
               b = significance_scale(after, is_share, step);
    double freedom;

    if (a.sum.norm <= 0 || b.sum.norm <= 0 || a.ratio == b.ratio)
        return 1;
    *error = significance_error(&a, &b, is_share, &freedom);
    if (significance_has_logarithm(&a, is_share) && significance_has_logarithm(&b, is_share))
        return significance_by_logarithm(&a, &b, is_share);
    return *error > 0 ? significance_student((b.ratio - a.ratio) / *error, freedom) : 1;
}

Significance significance_compare(const SignificanceSeries *before, const SignificanceSeries *after,
                                  bool is_share) {
    Significance s = {.before = significance_ratio(significance_sum(before)),
                      .after = significance_ratio(significance_sum(after)),
                      .is_spread_known = before->n >= SPANS_MIN && after->n >= SPANS_MIN};
    size_t n = MIN(before->n, after->n);
    double error = 0;

    s.p = significance_at_scale(before, after, is_share, 0, &s.error);
    for (size_t step = 1; s.is_spread_known && step < 1 << SCALES && n / step >= SPANS_MIN;
         step *= 2) {
        double p = significance_at_scale(before, after, is_share, step, &error);

        if (p >= s.p) {
            s.p = p;
            s.error = error;
        }
    }
    return s;
}

typedef struct RankedP {
    double p;
    size_t at;
} RankedP;

static int significance_compare_ranks(const void *x, const void *y) {
    const RankedP *a = x, *b = y;

    return a->p < b->p ? -1 : a->p > b->p ? 1 : 0;
}

int significance_adjust(const double *p, size_t n, double *ret_q) {
    _cleanup_free_ RankedP *ranks = calloc(n + 1, sizeof(*ranks));
    double least = 1;

    if (!ranks)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        ranks[i] = (RankedP){.p = p[i], .at = i};
    qsort(ranks, n, sizeof(*ranks), significance_compare_ranks);
    for (size_t i = n; i > 0; i--) {
        least = MIN(least, ranks[i - 1].p * (double)n / (double)i);
        ret_q[ranks[i - 1].at] = least;
    }
    return 0;
}
