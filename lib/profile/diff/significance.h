/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether two series of counts differ by more than chance. Samples of a program come in bursts, so
 * counts spread more than those of independent events do; how much more is taken from the counts of
 * one series over time.
 */

#include <stdbool.h>
#include <stddef.h>

enum { SIGNIFICANCE_SPANS_MAX = 64 };

/* A count and what it is a part of, for each span of time: all samples of the span (the ratio is a
 * share), or its length (the ratio is a rate). */
typedef struct SignificanceSeries {
    double counts[SIGNIFICANCE_SPANS_MAX], norms[SIGNIFICANCE_SPANS_MAX];
    size_t n;
} SignificanceSeries;

typedef struct Significance {
    double before, after; /* the ratios */
    double error;         /* the standard error of their difference */
    double p;             /* how likely a difference like this one is without a change */
    bool is_spread_known; /* the series have enough spans to see how much counts vary */
} Significance;

/* `is_share`: ratios are shares. Spans are also taken two, four and eight at a time, as bursts may
 * be longer than one; the scale that speaks least for a change counts. */
Significance significance_compare(const SignificanceSeries *before, const SignificanceSeries *after,
                                  bool is_share);

/* Turns p values into the least rate of false discoveries at which each counts as a change, by
 * Benjamini and Hochberg. -ENOMEM. */
int significance_adjust(const double *p, size_t n, double *ret_q);

/* Both tails of Student's distribution; inf degrees of freedom: those of the normal one. */
double significance_student(double t, double freedom);
