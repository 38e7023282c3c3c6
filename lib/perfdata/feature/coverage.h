/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The time span of a recording, its CPUs, and its gaps. Samples alone cannot show this, because an
 * idle CPU has none either. All times are on one clock, which the user of the struct chooses. When
 * a list must shrink, the result claims less than was recorded, never more.
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
#define PD_GAP_OPEN UINT64_MAX /* as `to_ns`: the gap has not ended */

typedef enum PdGapReason {
    PD_GAP_STOPPED,
    PD_GAP_PAUSED,
    PD_GAP_DOWN,        /* the recorder did not run */
    PD_GAP_LOST,        /* samples were taken but did not fit into a buffer */
    PD_GAP_OFFLINE,     /* the CPU was offline, so nothing ran that could have been recorded */
    PD_GAP_ABSENT,      /* the control group did not exist */
    PD_GAP_NOT_STARTED, /* nothing had ever been recorded before */
    PD_GAP_DELETED,     /* it was recorded and has been deleted */
    PD_GAP_DAMAGED,     /* it was recorded and cannot be read */
    PD_GAP_REBOOTED,    /* it is before the last boot and is left out */
    PD_GAP_UNKNOWN,     /* unknown whether it was recorded */
    PD_GAP_RELOADED,    /* a new configuration reopened the events */
    PD_GAP_FAILED,      /* the CPU was online, but the events could not be opened on it */
    PD_GAP_REOPENED,    /* the events were reopened together with one that had been missing */
    PD_GAP_ASLEEP,      /* the machine was suspended, and its CPUs were off */
    PD_GAP_REASONS,
} PdGapReason;

typedef struct PdGap {
    uint64_t from_ns, to_ns;
    uint32_t cpu;
    PdGapReason reason;
} PdGap;

typedef struct PdCoverage {
    uint64_t from_ns, to_ns;
    PdGap *gaps; /* sorted by from_ns */
    size_t n_gaps;
    uint64_t cpus[PD_COVERAGE_WORDS_MAX]; /* a bit for each recorded CPU */
} PdCoverage;

void pd_coverage_done(PdCoverage *coverage);
/* -ENOMEM; *ret is overwritten. */
int pd_coverage_copy(const PdCoverage *coverage, PdCoverage *ret);

/* Joins gaps of the same CPU and reason that touch. A gap that has not ended is ended by the next
 * one of its kind. -ENOMEM. */
int pd_coverage_add_gap(PdCoverage *coverage, const PdGap *gap);
/* The coverage of n recordings together, each with its own span: the gaps of all of them remain,
 * and the time between two recordings is unknown. -ENOMEM; *ret is overwritten. */
int pd_coverage_unite(const PdCoverage *const *list, size_t n, PdCoverage *ret);
/* Drops gaps that do not count, then merges the closest ones, until at most n (at least 1) are
 * left. */
void pd_coverage_thin(PdCoverage *coverage, size_t n);
/* Cuts everything outside of from_ns to to_ns. */
void pd_coverage_clip(PdCoverage *coverage);
/* Adds an offset, modulo 2^64, to all times: the difference between two clocks. -ERANGE: the end
 * is now before the beginning. */
int pd_coverage_shift(PdCoverage *coverage, uint64_t offset);

/* The wall clock is adjusted all the time, and each recording converts its coverage by its own
 * difference, the wall clock minus that of its samples. With the difference of another recording,
 * what follows without a gap on the clock of the samples still does. Where the clock was set
 * meanwhile, or the host restarted, nothing changes. -ERANGE as above. */
int pd_coverage_align(PdCoverage *coverage, uint64_t difference, uint64_t other);

void pd_coverage_add_cpu(PdCoverage *coverage, uint32_t cpu);
bool pd_coverage_has_cpu(const PdCoverage *coverage, uint32_t cpu);

/* An offline CPU does not make a recording incomplete. */
bool pd_gap_counts(const PdGap *gap);
/* Whether all of from_ns to to_ns was recorded on each online CPU. */
bool pd_coverage_is_whole(const PdCoverage *coverage);
/* How much of the span was recorded on each CPU. */
uint64_t pd_coverage_recorded_ns(const PdCoverage *coverage);
/* How much of a part of it was recorded on any CPU: a gap of one CPU is none of the others. */
uint64_t pd_coverage_recorded_on_any_ns(const PdCoverage *coverage, uint64_t from_ns,
                                        uint64_t to_ns);

/* A word for JSON ("notStarted"), and a text for people in parentheses. */
const char *pd_gap_reason_name(PdGapReason reason);
const char *pd_gap_reason_text(PdGapReason reason);
/* -EINVAL. */
int pd_gap_reason_from_name(const char *name, PdGapReason *ret);
