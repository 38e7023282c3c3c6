/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * From when to when a recording was being made, on which CPUs, and where it was not. Samples alone
 * cannot say so: a CPU that idles has none either. Times are by one clock; which one is the
 * holder's affair. Where a list must shrink, it claims less than was recorded, never more.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PD_GAPS_MAX = 256,
    PD_COVERAGE_CPUS_MAX = 8192,
    PD_COVERAGE_WORDS_MAX = PD_COVERAGE_CPUS_MAX / 64,
};

#define PD_ALL_CPUS UINT32_MAX
#define PD_GAP_OPEN UINT64_MAX /* as `to_ns`: the gap goes on */

typedef enum PdGapReason {
    PD_GAP_STOPPED,
    PD_GAP_PAUSED,
    PD_GAP_DOWN,        /* the recorder did not run */
    PD_GAP_LOST,        /* samples were taken and found no room */
    PD_GAP_OFFLINE,     /* the CPU was: nothing ran that could have been recorded */
    PD_GAP_ABSENT,      /* the control group did not exist */
    PD_GAP_NOT_STARTED, /* nothing was ever recorded before */
    PD_GAP_DELETED,     /* it was recorded, and deleted since */
    PD_GAP_DAMAGED,     /* it was recorded, and cannot be read */
    PD_GAP_REBOOTED,    /* it lies before the last boot, and is left out */
    PD_GAP_UNKNOWN,     /* nobody noted whether it was recorded */
    PD_GAP_RELOADED,    /* a new configuration opened the events anew */
    PD_GAP_FAILED,      /* the CPU was online, and the events could not be opened on it */
    PD_GAP_REOPENED,    /* the events were opened anew, with one that was missing */
    PD_GAP_REASONS,
} PdGapReason;

typedef struct PdGap {
    uint64_t from_ns, to_ns;
    uint32_t cpu;
    PdGapReason reason;
} PdGap;

typedef struct PdCoverage {
    uint64_t from_ns, to_ns;
    PdGap *gaps; /* by from_ns */
    size_t n_gaps;
    uint64_t cpus[PD_COVERAGE_WORDS_MAX]; /* a bit for each that was recorded */
} PdCoverage;

void pd_coverage_done(PdCoverage *coverage);
/* -ENOMEM; *ret is overwritten. */
int pd_coverage_copy(const PdCoverage *coverage, PdCoverage *ret);

/* Joins what touches of the same CPU and reason. One that is open is closed by the next of its
 * kind. -ENOMEM. */
int pd_coverage_add_gap(PdCoverage *coverage, const PdGap *gap);
/* What n recordings cover together, of which each claims its own span: gaps of any of them stay,
 * and what lies between two of them is not known. -ENOMEM; *ret is overwritten. */
int pd_coverage_unite(const PdCoverage *const *list, size_t n, PdCoverage *ret);
/* So that no more than n are left, 1 at least: the nearest ones become one. */
void pd_coverage_thin(PdCoverage *coverage, size_t n);
/* Cuts all that lies outside of from_ns to to_ns. */
void pd_coverage_clip(PdCoverage *coverage);

void pd_coverage_add_cpu(PdCoverage *coverage, uint32_t cpu);
bool pd_coverage_has_cpu(const PdCoverage *coverage, uint32_t cpu);

/* A CPU that is offline takes nothing from a recording. */
bool pd_gap_counts(const PdGap *gap);
/* All of from_ns to to_ns, on each CPU that was online. */
bool pd_coverage_is_whole(const PdCoverage *coverage);
/* How much of it. */
uint64_t pd_coverage_recorded_ns(const PdCoverage *coverage);

/* One word for programs ("notStarted"), and for people what stands in brackets. */
const char *pd_gap_reason_name(PdGapReason reason);
const char *pd_gap_reason_text(PdGapReason reason);
/* -EINVAL. */
int pd_gap_reason_from_name(const char *name, PdGapReason *ret);
