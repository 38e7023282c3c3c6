/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/folder/store-private.h"
#include "store/window/window.h"
#include "util/clock.h"

/*
 * Computes which part of a window was recorded, from the coverage of each segment. Segments of a
 * boot follow each other on the clock of their samples; where one ends before the next begins, the
 * former has the reason. That clock stands still while the machine sleeps, so a sleep is a gap
 * between two segments that are adjacent. A segment without known coverage never makes a part of a
 * window complete.
 */

enum { STAMP_MAX = 32 };

#define CLOCK_NOISE_NS NS_PER_SECOND
#define SHORT_NS       (2 * NS_PER_SECOND) /* shown in seconds, begin and end might look the same */

typedef struct Composing {
    const WindowQuery *query;
    PdCoverage *to;
    uint64_t at; /* everything before this is accounted for, on the clock of the query */
    uint64_t since, until;
    const Entry *earlier, *later; /* whose wall clock holds where a gap begins and where it ends */
    uint64_t shift;               /* of the wall clock, as of the last segment that differed */
    int error;
} Composing;

/* The offset to wall-clock time, modulo 2^64. It differs between segments if the clock was set or
 * the machine slept. Smaller differences are those of two measurements, and would cut a gap that
 * two segments share into two. */
static uint64_t window_coverage_shift(Composing *c, const Entry *entry) {
    if (!c->query->by_monotonic)
        return 0;
    if (entry->real_shift_ns - c->shift + CLOCK_NOISE_NS > 2 * CLOCK_NOISE_NS)
        c->shift = entry->real_shift_ns;
    return c->shift;
}

static void window_coverage_put(Composing *c, uint64_t from, uint64_t to, uint32_t cpu,
                                PdGapReason reason) {
    from = MAX(from, c->since);
    to = MIN(to, c->until);
    if (from >= to || c->error < 0)
        return;
    c->error =
        pd_coverage_add_gap(c->to, &(PdGap){.from_ns = from + window_coverage_shift(c, c->earlier),
                                            .to_ns = to + window_coverage_shift(c, c->later),
                                            .cpu = cpu,
                                            .reason = reason});
}

/* Converts from the segment's clock to that of the query. */
static uint64_t window_coverage_of_query(const Composing *c, const Entry *entry, uint64_t ns) {
    return c->query->by_monotonic ? ns : ns + entry->real_shift_ns;
}

static uint64_t window_coverage_from_of(const Composing *c, const Entry *entry) {
    return window_coverage_of_query(c, entry,
                                    entry->covered ? entry->covered_from_ns : entry->first_ns);
}

static uint64_t window_coverage_to_of(const Composing *c, const Entry *entry) {
    return window_coverage_of_query(c, entry,
                                    entry->covered ? entry->covered_to_ns : entry->last_ns);
}

static bool window_coverage_is_of_boot(const Window *w, const Entry *entry) {
    return entry_is_readable(entry) && strcmp(entry->boot, w->boot) == 0 &&
           (entry->covered || entry->samples > 0);
}

/* It may be of the boot, and nothing of it can be used. */
static bool window_coverage_is_unreadable(const Window *w, const Entry *entry) {
    return !entry_is_readable(entry) && (!entry->boot[0] || strcmp(entry->boot, w->boot) == 0);
}

/* Notes why nothing exists before the first segment of this boot. */
static void window_coverage_put_before(Composing *c, const Entry *older, const Entry *first) {
    uint64_t to = window_coverage_from_of(c, first), boundary;

    if (!older) {
        window_coverage_put(c, c->since, to, PD_ALL_CPUS,
                            first->name.number > 1 ? PD_GAP_DELETED : PD_GAP_NOT_STARTED);
        return;
    }
    if (!entry_is_readable(older) || !older->covered || !first->covered) {
        window_coverage_put(c, c->since, to, PD_ALL_CPUS, PD_GAP_UNKNOWN);
        return;
    }
    /* On the clock of samples the window does not reach into the previous boot. */
    boundary = c->query->by_monotonic ? 0 : older->covered_to_ns + older->real_shift_ns;
    window_coverage_put(c, c->since, MIN(boundary, to), PD_ALL_CPUS, PD_GAP_REBOOTED);
    window_coverage_put(c, MIN(boundary, to), to, PD_ALL_CPUS, older->after);
}

static PdGapReason window_coverage_reason_between(const Entry *before, const Entry *next,
                                                  bool unreadable) {
    if (unreadable)
        return PD_GAP_DAMAGED;
    return before->covered && next->covered ? before->after : PD_GAP_UNKNOWN;
}

/* On the clock of samples the gap has no length, so a window contains it or does not. */
static void window_coverage_put_sleep(Composing *c, const Entry *before, const Entry *next) {
    uint64_t at = window_coverage_from_of(c, next);
    PdGap gap = {.cpu = PD_ALL_CPUS, .reason = PD_GAP_ASLEEP};

    if (!c->query->by_monotonic) {
        window_coverage_put(c, window_coverage_to_of(c, before), at, gap.cpu, gap.reason);
        return;
    }
    if (at <= c->since || at >= c->until || c->error < 0)
        return;
    gap.from_ns = at + window_coverage_shift(c, before);
    gap.to_ns = at + window_coverage_shift(c, next);
    if (gap.from_ns < gap.to_ns)
        c->error = pd_coverage_add_gap(c->to, &gap);
}

static PdGapReason window_coverage_reason_after(const Entry *last, bool unreadable) {
    if (unreadable)
        return PD_GAP_DAMAGED;
    return last->covered && !last->is_written ? last->after : PD_GAP_UNKNOWN;
}

static void window_coverage_put_entry(Composing *c, const Entry *entry) {
    if (!entry->covered)
        window_coverage_put(c, window_coverage_from_of(c, entry), window_coverage_to_of(c, entry),
                            PD_ALL_CPUS, PD_GAP_UNKNOWN);
    for (size_t i = 0; entry->covered && i < entry->n_gaps; i++)
        window_coverage_put(c, window_coverage_of_query(c, entry, entry->gaps[i].from_ns),
                            window_coverage_of_query(c, entry, entry->gaps[i].to_ns),
                            entry->gaps[i].cpu, entry->gaps[i].reason);
}

/* Two segments that are adjacent on their own clock stay adjacent, even if the wall clock was
 * set. */
static bool window_coverage_is_joined(const Entry *before, const Entry *next) {
    return before->covered && next->covered && before->covered_to_ns >= next->covered_from_ns;
}

static void window_coverage_compose(Composing *c, const Window *w, const Entry *const *entries,
                                    size_t n) {
    const Entry *before = NULL, *older = NULL;
    bool unreadable = false;

    for (size_t i = 0; i < n; i++) {
        const Entry *entry = entries[i];

        if (entry_is_blank(entry))
            continue;
        if (!window_coverage_is_of_boot(w, entry)) {
            unreadable |= before && window_coverage_is_unreadable(w, entry);
            older = before ? older : entry;
            continue;
        }
        c->earlier = before ?: entry;
        c->later = entry;
        if (!before)
            window_coverage_put_before(c, older, entry);
        else if (!window_coverage_is_joined(before, entry))
            window_coverage_put(c, window_coverage_to_of(c, before),
                                window_coverage_from_of(c, entry), PD_ALL_CPUS,
                                window_coverage_reason_between(before, entry, unreadable));
        else if (entry_slept_between(before, entry))
            window_coverage_put_sleep(c, before, entry);
        c->earlier = entry;
        window_coverage_put_entry(c, entry);
        unreadable = false;
        before = entry;
    }
    if (before)
        window_coverage_put(c, window_coverage_to_of(c, before), c->until, PD_ALL_CPUS,
                            window_coverage_reason_after(before, unreadable));
}

/* Sets the bounds of the request on the clock of the query; an open end becomes the end of the
 * data. */
static void window_coverage_set_bounds(Composing *c, const Window *w, const Entry *const *entries,
                                       size_t n) {
    const Entry *first = NULL, *last = NULL;

    for (size_t i = 0; i < n; i++)
        if (window_coverage_is_of_boot(w, entries[i])) {
            first = first ?: entries[i];
            last = entries[i];
        }
    c->since = c->query->since_ns;
    c->until = c->query->until_ns;
    if (!first)
        return;
    if (c->since == 0)
        c->since = window_coverage_from_of(c, first);
    if (c->until == 0)
        c->until = window_coverage_to_of(c, last);
    c->until = MAX(c->since, c->until);
}

/* A bound between two segments belongs to the gap there, as in window_coverage_compose(). */
static uint64_t window_coverage_real_of(Composing *c, const Window *w, const Entry *const *entries,
                                        size_t n, bool is_end) {
    uint64_t ns = is_end ? c->until : c->since;
    const Entry *in = NULL;

    for (size_t i = 0; i < n; i++) {
        if (!window_coverage_is_of_boot(w, entries[i]))
            continue;
        if (is_end && in && window_coverage_to_of(c, in) >= ns)
            break;
        if (is_end || !in || window_coverage_from_of(c, entries[i]) <= ns)
            in = entries[i];
    }
    return in ? ns + window_coverage_shift(c, in) : ns;
}

int window_cover(Window *w, const WindowQuery *query, const Entry *const *entries, size_t n) {
    Composing c = {.query = query, .to = &w->coverage};
    uint64_t before_ns, from_ns;

    window_coverage_set_bounds(&c, w, entries, n);
    w->coverage.from_ns = window_coverage_real_of(&c, w, entries, n, false);
    w->coverage.to_ns = window_coverage_real_of(&c, w, entries, n, true);
    /* The clock was set back by more than the window is long. */
    if (w->coverage.from_ns > w->coverage.to_ns)
        w->coverage.from_ns = w->coverage.to_ns - (c.until - c.since);
    from_ns = w->coverage.from_ns;
    window_coverage_compose(&c, w, entries, n);
    /* The window begins before the clock of the samples does. */
    before_ns = query->asked_ns > c.until - c.since ? query->asked_ns - (c.until - c.since) : 0;
    if (query->by_monotonic && before_ns > 0 && before_ns < w->coverage.from_ns && c.error == 0) {
        w->coverage.from_ns = from_ns - before_ns;
        c.error = pd_coverage_add_gap(&w->coverage, &(PdGap){.from_ns = w->coverage.from_ns,
                                                             .to_ns = from_ns,
                                                             .cpu = PD_ALL_CPUS,
                                                             .reason = PD_GAP_REBOOTED});
    }
    return c.error;
}

void window_uncover(Window *w) {
    for (size_t i = 0; i < w->n_parts; i++) {
        const WindowPart *part = &w->parts[i];
        PdGap gap = {.from_ns = MAX(part->real_from_ns, w->coverage.from_ns),
                     .to_ns = MIN(part->real_to_ns, w->coverage.to_ns),
                     .cpu = PD_ALL_CPUS,
                     .reason = PD_GAP_DAMAGED};

        if ((part->gone || part->damaged) && gap.from_ns < gap.to_ns)
            (void)pd_coverage_add_gap(&w->coverage, &gap);
    }
}

StoreCoverage window_covered(const Window *w) {
    StoreCoverage covered = {.since_ns = w->coverage.from_ns,
                             .until_ns = w->coverage.to_ns,
                             .recorded_ns = pd_coverage_recorded_ns(&w->coverage)};
    PdCoverage few;

    if (pd_coverage_copy(&w->coverage, &few) < 0)
        return covered;
    pd_coverage_thin(&few, STORE_GAPS_MAX);
    covered.is_known = true;
    covered.n_gaps = few.n_gaps;
    for (size_t i = 0; i < few.n_gaps; i++)
        covered.gaps[i] = few.gaps[i];
    pd_coverage_done(&few);
    return covered;
}

static void window_coverage_print_stamp(uint64_t ns, bool with_ms, char ret[STAMP_MAX]) {
    time_t seconds = (time_t)(ns / NS_PER_SECOND);
    char text[24], ms[8] = "";
    struct tm utc;

    if (with_ms)
        snprintf(ms, sizeof(ms), ".%03u", (unsigned)(ns % NS_PER_SECOND / NS_PER_MS));
    if (!gmtime_r(&seconds, &utc) || strftime(text, sizeof(text), "%FT%T", &utc) == 0)
        snprintf(ret, STAMP_MAX, "%" PRIu64, ns / NS_PER_SECOND);
    else
        snprintf(ret, STAMP_MAX, "%s%sZ", text, ms);
}

/* The search has already noted a sentence for these. */
static bool window_coverage_is_noted(const Window *w, const PdGap *gap) {
    return gap->reason == PD_GAP_REBOOTED ||
           (gap->reason == PD_GAP_DELETED && gap->from_ns == w->coverage.from_ns);
}

void window_note_gaps(Window *w, const SnapshotFilter *filter) {
    for (size_t i = w->coverage.n_gaps; i > 0; i--) {
        const PdGap *gap = &w->coverage.gaps[i - 1];

        if (gap->cpu < MANIFEST_CPUS_MAX && !selection_has_cpu(filter, gap->cpu)) {
            w->coverage.n_gaps--;
            memmove(&w->coverage.gaps[i - 1], &w->coverage.gaps[i],
                    (w->coverage.n_gaps - (i - 1)) * sizeof(*gap));
        }
    }
    for (size_t i = 0; i < w->coverage.n_gaps; i++) {
        const PdGap *gap = &w->coverage.gaps[i];
        char from[STAMP_MAX], to[STAMP_MAX], cpu[32] = "";

        if (!pd_gap_counts(gap) || (w->n_partial > 0 && window_coverage_is_noted(w, gap)))
            continue;
        window_coverage_print_stamp(gap->from_ns, gap->to_ns - gap->from_ns < SHORT_NS, from);
        window_coverage_print_stamp(gap->to_ns, gap->to_ns - gap->from_ns < SHORT_NS, to);
        if (gap->cpu != PD_ALL_CPUS)
            snprintf(cpu, sizeof(cpu), " on CPU %" PRIu32, gap->cpu);
        window_note_partial(w, WINDOW_NOT_RECORDED "%s to %s%s (%s)", from, to, cpu,
                            pd_gap_reason_text(gap->reason));
    }
}
