/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perfdata/feature/coverage.h"

#include <errno.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/macro.h"

/*
 * A list of gaps, sorted by their start. It is bounded: when it is full, gaps that do not count
 * are left out, else the two closest ones become one that spans both.
 */

#define LOST_NEAR_NS NS_PER_SECOND
/* A larger difference between two recordings was made by setting the clock. */
#define COVERAGE_ADJUSTED_NS NS_PER_SECOND

/* clang-format off */
static const struct {
    const char *name, *text;
} reasons[PD_GAP_REASONS] = {
    [PD_GAP_STOPPED]     = { "stopped",    "stopped"                      },
    [PD_GAP_PAUSED]      = { "paused",     "paused"                       },
    [PD_GAP_DOWN]        = { "down",       "profd did not run"            },
    [PD_GAP_LOST]        = { "lost",       "samples lost"                 },
    [PD_GAP_OFFLINE]     = { "offline",    "CPU offline"                  },
    [PD_GAP_ABSENT]      = { "absent",     "control group does not exist" },
    [PD_GAP_NOT_STARTED] = { "notStarted", "before the first recording"   },
    [PD_GAP_DELETED]     = { "deleted",    "deleted"                      },
    [PD_GAP_DAMAGED]     = { "damaged",    "damaged"                      },
    [PD_GAP_REBOOTED]    = { "rebooted",   "before the last boot"         },
    [PD_GAP_UNKNOWN]     = { "unknown",    "not known"                    },
    [PD_GAP_RELOADED]    = { "reloaded",   "configuration reloaded"       },
    [PD_GAP_FAILED]      = { "failed",     "events not available"         },
    [PD_GAP_REOPENED]    = { "reopened",   "a missing event was added"    },
    [PD_GAP_ASLEEP]      = { "asleep",     "the machine slept"            },
};
/* clang-format on */

const char *pd_gap_reason_name(PdGapReason reason) {
    return reasons[reason].name;
}

const char *pd_gap_reason_text(PdGapReason reason) {
    return reasons[reason].text;
}

int pd_gap_reason_from_name(const char *name, PdGapReason *ret) {
    for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
        if (strcmp(name, reasons[i].name) == 0) {
            *ret = (PdGapReason)i;
            return 0;
        }
    return -EINVAL;
}

void pd_coverage_done(PdCoverage *coverage) {
    free(coverage->gaps);
    *coverage = (PdCoverage){};
}

int pd_coverage_copy(const PdCoverage *coverage, PdCoverage *ret) {
    PdCoverage copy = *coverage;

    copy.gaps = NULL;
    copy.n_gaps = 0;
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        PdGap *gap = array_grow(&copy.gaps, &copy.n_gaps);

        if (!gap) {
            free(copy.gaps);
            return -ENOMEM;
        }
        *gap = coverage->gaps[i];
    }
    *ret = copy;
    return 0;
}

static bool coverage_same_kind(const PdGap *a, const PdGap *b) {
    return a->cpu == b->cpu && a->reason == b->reason;
}

/* Losses come in bursts, since a full queue drops again and again. */
static bool coverage_touches(const PdGap *a, const PdGap *b) {
    uint64_t near = a->reason == PD_GAP_LOST ? LOST_NEAR_NS : 0;

    return coverage_same_kind(a, b) && a->from_ns <= b->to_ns + MIN(near, PD_GAP_OPEN - b->to_ns) &&
           b->from_ns <= a->to_ns + MIN(near, PD_GAP_OPEN - a->to_ns);
}

static void coverage_remove_gap(PdCoverage *coverage, size_t i) {
    coverage->n_gaps--;
    memmove(&coverage->gaps[i], &coverage->gaps[i + 1],
            (coverage->n_gaps - i) * sizeof(*coverage->gaps));
}

/* The distance between two neighbours. */
static uint64_t coverage_between(const PdGap *a, const PdGap *b) {
    return b->from_ns > a->to_ns ? b->from_ns - a->to_ns : 0;
}

/* Neighbours become one gap. A gap that does not count is dropped first: joined with one that
 * counts it would claim that nothing was recorded while the other CPUs were. */
static void coverage_make_room(PdCoverage *coverage) {
    size_t nearest = 0;
    PdGap *a, *b;

    for (size_t i = coverage->n_gaps; i-- > 0;)
        if (!pd_gap_counts(&coverage->gaps[i])) {
            coverage_remove_gap(coverage, i);
            return;
        }
    for (size_t i = 1; i + 1 < coverage->n_gaps; i++)
        if (coverage_between(&coverage->gaps[i], &coverage->gaps[i + 1]) <
            coverage_between(&coverage->gaps[nearest], &coverage->gaps[nearest + 1]))
            nearest = i;
    a = &coverage->gaps[nearest];
    b = &coverage->gaps[nearest + 1];
    /* Prefer the reason of the longer gap. */
    if (b->to_ns - b->from_ns > a->to_ns - a->from_ns)
        a->reason = b->reason;
    a->cpu = a->cpu == b->cpu ? a->cpu : PD_ALL_CPUS;
    a->to_ns = MAX(a->to_ns, b->to_ns);
    coverage_remove_gap(coverage, nearest + 1);
}

void pd_coverage_thin(PdCoverage *coverage, size_t n) {
    while (coverage->n_gaps > n)
        coverage_make_room(coverage);
}

/* Inserts it in order of from_ns. */
static int coverage_insert_gap(PdCoverage *coverage, const PdGap *gap) {
    size_t i;

    if (!array_grow(&coverage->gaps, &coverage->n_gaps))
        return -ENOMEM;
    for (i = coverage->n_gaps - 1; i > 0 && coverage->gaps[i - 1].from_ns > gap->from_ns; i--)
        coverage->gaps[i] = coverage->gaps[i - 1];
    coverage->gaps[i] = *gap;
    return 0;
}

int pd_coverage_add_gap(PdCoverage *coverage, const PdGap *add) {
    PdGap gap = *add;

    if (gap.to_ns < gap.from_ns)
        gap.to_ns = gap.from_ns;
    for (size_t i = 0; i < coverage->n_gaps;) {
        const PdGap *old = &coverage->gaps[i];
        bool was_open = coverage_same_kind(old, &gap) && old->to_ns == PD_GAP_OPEN;

        if (!was_open && !coverage_touches(old, &gap)) {
            i++;
            continue;
        }
        gap.from_ns = MIN(gap.from_ns, old->from_ns);
        gap.to_ns = was_open ? gap.to_ns : MAX(gap.to_ns, old->to_ns);
        coverage_remove_gap(coverage, i);
    }
    if (coverage->n_gaps >= PD_GAPS_MAX && !pd_gap_counts(&gap))
        return 0;
    if (coverage->n_gaps >= PD_GAPS_MAX)
        coverage_make_room(coverage);
    return coverage_insert_gap(coverage, &gap);
}

/* The next gap of all lists by start and position; NULL: none. */
static const PdCoverage *coverage_next_by_begin(const PdCoverage *const *list, size_t n, size_t *at,
                                                const PdCoverage *before) {
    const PdCoverage *next = NULL;
    size_t found = 0;

    for (size_t i = 0; i < n; i++) {
        bool is_behind = !before || list[i]->from_ns > before->from_ns ||
                         (list[i]->from_ns == before->from_ns && i > *at);

        if (is_behind && (!next || list[i]->from_ns < next->from_ns)) {
            next = list[i];
            found = i;
        }
    }
    *at = found;
    return next;
}

static int coverage_unite(PdCoverage *to, const PdCoverage *from) {
    const PdGap between = {
        .from_ns = to->to_ns, .to_ns = from->from_ns, .cpu = PD_ALL_CPUS, .reason = PD_GAP_UNKNOWN};
    int r = between.from_ns < between.to_ns ? pd_coverage_add_gap(to, &between) : 0;

    for (size_t i = 0; r == 0 && i < from->n_gaps; i++)
        r = pd_coverage_add_gap(to, &from->gaps[i]);
    for (size_t i = 0; i < PD_COVERAGE_WORDS_MAX; i++)
        to->cpus[i] |= from->cpus[i];
    to->to_ns = MAX(to->to_ns, from->to_ns);
    return r;
}

int pd_coverage_unite(const PdCoverage *const *list, size_t n, PdCoverage *ret) {
    PdCoverage all = {};
    const PdCoverage *next = NULL;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (next = coverage_next_by_begin(list, n, &at, next))) {
        if (all.to_ns == 0)
            all.from_ns = all.to_ns = next->from_ns;
        r = coverage_unite(&all, next);
    }
    if (r < 0)
        pd_coverage_done(&all);
    else
        *ret = all;
    return r;
}

void pd_coverage_clip(PdCoverage *coverage) {
    coverage->to_ns = MAX(coverage->from_ns, coverage->to_ns);
    for (size_t i = coverage->n_gaps; i > 0; i--) {
        PdGap *gap = &coverage->gaps[i - 1];

        gap->from_ns = MAX(gap->from_ns, coverage->from_ns);
        gap->to_ns = MIN(gap->to_ns, coverage->to_ns);
        if (gap->from_ns >= gap->to_ns)
            coverage_remove_gap(coverage, i - 1);
    }
}

int pd_coverage_shift(PdCoverage *coverage, uint64_t offset) {
    coverage->from_ns += offset;
    coverage->to_ns += offset;
    for (size_t i = 0; i < coverage->n_gaps; i++) {
        coverage->gaps[i].from_ns += offset;
        coverage->gaps[i].to_ns += offset;
    }
    return coverage->from_ns <= coverage->to_ns ? 0 : -ERANGE;
}

int pd_coverage_align(PdCoverage *coverage, uint64_t difference, uint64_t other) {
    uint64_t offset = other - difference;
    int r = MIN(offset, -offset) > COVERAGE_ADJUSTED_NS ? 0 : pd_coverage_shift(coverage, offset);

    if (r == 0)
        pd_coverage_clip(coverage);
    return r;
}

void pd_coverage_add_cpu(PdCoverage *coverage, uint32_t cpu) {
    if (cpu < PD_COVERAGE_CPUS_MAX)
        coverage->cpus[cpu / 64] |= 1ULL << cpu % 64;
}

bool pd_coverage_has_cpu(const PdCoverage *coverage, uint32_t cpu) {
    return cpu < PD_COVERAGE_CPUS_MAX && coverage->cpus[cpu / 64] & 1ULL << cpu % 64;
}

bool pd_gap_counts(const PdGap *gap) {
    return gap->reason != PD_GAP_OFFLINE;
}

bool pd_coverage_is_whole(const PdCoverage *coverage) {
    for (size_t i = 0; i < coverage->n_gaps; i++)
        if (pd_gap_counts(&coverage->gaps[i]))
            return false;
    return true;
}

/* The part of a span that lies in no gap; `on_any`: in no gap of all CPUs. */
static uint64_t coverage_outside_gaps(const PdCoverage *coverage, uint64_t from_ns, uint64_t to_ns,
                                      bool on_any) {
    uint64_t missing_ns = 0, at = from_ns;

    for (size_t i = 0; i < coverage->n_gaps; i++) {
        const PdGap *gap = &coverage->gaps[i];
        uint64_t from = MAX(gap->from_ns, at), to = MIN(gap->to_ns, to_ns);

        if (!pd_gap_counts(gap) || (on_any && gap->cpu != PD_ALL_CPUS) || from >= to)
            continue;
        missing_ns += to - from;
        at = to;
    }
    return to_ns - from_ns - missing_ns;
}

uint64_t pd_coverage_recorded_ns(const PdCoverage *coverage) {
    return coverage_outside_gaps(coverage, coverage->from_ns, coverage->to_ns, false);
}

uint64_t pd_coverage_recorded_on_any_ns(const PdCoverage *coverage, uint64_t from_ns,
                                        uint64_t to_ns) {
    return coverage_outside_gaps(coverage, from_ns, to_ns, true);
}
