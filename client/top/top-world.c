/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/top/top-world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"

/*
 * Samples come a little out of order and later than the time at which everything older is known to
 * have come, so they are put into the slice of their own time, and a slice is shown when it is
 * complete. Slices of a second are kept for two minutes, then ten seconds together for a quarter of
 * an hour, then a minute together for an hour: a long window needs no exact begin. Stacks are only
 * added until their tree is full; then the world is made anew of the slices that it still has.
 */

typedef struct TopLevel {
    uint64_t age_s, span_s; /* slices older than this may become this long */
} TopLevel;

static const TopLevel top_levels[] = {{120, 10}, {900, 60}};

/* Slices beyond the hour are dropped once they are this much too old. */
enum { TOP_SLACK_S = 60 };

int top_world_init(TopWorld *world, unsigned keys, uint32_t stacks_max, size_t cells_max) {
    *world = (TopWorld){.stacks_max = stacks_max, .cells_max = cells_max};
    return profile_merge_init(&world->merge, keys, stacks_max);
}

void top_world_done(TopWorld *world) {
    for (size_t i = 0; i < world->n_slices; i++)
        free(world->slices[i].cells);
    free(world->slices);
    frame_names_free(world->names);
    profile_merge_done(&world->merge);
    pd_coverage_done(&world->gaps);
    *world = (TopWorld){};
}

static void top_world_remove(TopWorld *world, size_t number) {
    world->n_cells -= world->slices[number].n_cells;
    free(world->slices[number].cells);
    memmove(&world->slices[number], &world->slices[number + 1],
            (world->n_slices - number - 1) * sizeof(*world->slices));
    world->n_slices--;
}

static void top_world_drop_oldest(TopWorld *world) {
    world->begin_ns = MAX(world->begin_ns, world->slices[0].to_ns);
    top_world_remove(world, 0);
}

/* Makes one slice of two neighbours. */
static int top_world_unite(TopWorld *world, size_t number) {
    TopSlice *a = &world->slices[number], *b = a + 1;
    ProfileCell *cells = realloc(a->cells, (a->n_cells + b->n_cells + 1) * sizeof(*cells));
    size_t n;

    if (!cells)
        return -ENOMEM;
    if (b->n_cells > 0)
        memcpy(cells + a->n_cells, b->cells, b->n_cells * sizeof(*cells));
    n = profile_cells_unite(cells, a->n_cells + b->n_cells);
    a->cells = cells;
    world->n_cells = world->n_cells - a->n_cells + n;
    a->n_cells = n;
    a->to_ns = b->to_ns;
    a->lost += b->lost;
    top_world_remove(world, number + 1);
    return 0;
}

/* Whether a slice and the next one are old enough to be one. */
static bool top_world_may_unite(const TopWorld *world, size_t number) {
    const TopSlice *a = &world->slices[number], *b = a + 1;
    uint64_t span = b->to_ns - a->from_ns;
    uint64_t age = world->end_ns > b->to_ns ? world->end_ns - b->to_ns : 0;

    for (size_t i = 0; i < ARRAY_SIZE(top_levels); i++)
        if (age >= top_levels[i].age_s * NS_PER_SECOND &&
            span <= top_levels[i].span_s * NS_PER_SECOND)
            return true;
    return false;
}

static int top_world_thin(TopWorld *world) {
    int r = 0;

    while (world->n_slices > 1 && (world->n_cells > world->cells_max ||
                                   world->end_ns - world->slices[0].to_ns >
                                       (uint64_t)(TOP_HOUR_S + TOP_SLACK_S) * NS_PER_SECOND))
        top_world_drop_oldest(world);
    for (size_t i = 0; i + 1 < world->n_slices && r == 0;)
        if (top_world_may_unite(world, i))
            r = top_world_unite(world, i);
        else
            i++;
    return r;
}

/* Numbers everything anew, so that what no slice refers to is gone. Half of the slices go as well
 * if even so there is no room. */
static int top_world_renew(TopWorld *world) {
    ProfileMerge fresh;
    int r = profile_merge_init(&fresh, world->merge.into->keys, world->stacks_max);

    for (size_t i = world->n_slices; i > 0 && r == 0; i--) {
        TopSlice *slice = &world->slices[i - 1];
        ProfileCell *cells;

        r = profile_merge_cells(&fresh, world->merge.into, slice->cells, slice->n_cells, &cells);
        if (r == 0) {
            free(slice->cells);
            slice->cells = cells;
        }
        if (r == -ENOSPC || stack_tree_n_nodes(fresh.into->stacks) > world->stacks_max / 2) {
            for (size_t gone = r == -ENOSPC ? i : i - 1; gone > 0; gone--)
                top_world_drop_oldest(world);
            r = 0;
            break;
        }
    }
    if (r < 0) {
        profile_merge_done(&fresh);
        /* Some slices have new numbers already: none can be used. */
        while (world->n_slices > 0)
            top_world_drop_oldest(world);
        return r;
    }
    profile_merge_done(&world->merge);
    world->merge = fresh;
    world->names = frame_names_free(world->names);
    return 0;
}

/* Returns the slice of a time, and makes it if it does not exist yet. */
static TopSlice *top_world_slice(TopWorld *world, uint64_t from_ns, uint64_t to_ns) {
    size_t at = world->n_slices;

    while (at > 0 && world->slices[at - 1].from_ns > from_ns)
        at--;
    if (at > 0 && world->slices[at - 1].to_ns > from_ns)
        return &world->slices[at - 1];
    if (!array_grow(&world->slices, &world->n_slices))
        return NULL;
    memmove(&world->slices[at + 1], &world->slices[at],
            (world->n_slices - 1 - at) * sizeof(*world->slices));
    world->slices[at] = (TopSlice){.from_ns = from_ns, .to_ns = to_ns};
    return &world->slices[at];
}

static int top_world_append(TopWorld *world, TopSlice *slice, const ProfileCell *cells, size_t n) {
    ProfileCell *grown = realloc(slice->cells, (slice->n_cells + n + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    memcpy(grown + slice->n_cells, cells, n * sizeof(*grown));
    slice->cells = grown;
    slice->n_cells += n;
    world->n_cells += n;
    return 0;
}

/* The span of time of a cell. */
static void top_world_span(const Profile *profile, const ProfileCell *cell, uint64_t *ret_from_ns,
                           uint64_t *ret_to_ns) {
    uint32_t time = profile->labels[cell->label].values[PROFILE_TIME];

    if (time == PROFILE_NONE) {
        *ret_from_ns = profile->first_ns;
        *ret_to_ns = MAX(profile->last_ns, profile->first_ns) + 1;
        return;
    }
    *ret_from_ns = profile->start_ns + time * profile->bucket_ns;
    *ret_to_ns = *ret_from_ns + profile->bucket_ns;
}

/* `cells` are those of the profile, in numbers of the world. Neighbours mostly have one time. */
static int top_world_place(TopWorld *world, const Profile *profile, const ProfileCell *cells) {
    TopSlice *slice = NULL;
    int r = 0;

    for (size_t i = 0, n = 1; i < profile->n_cells && r == 0; i += n, n = 1) {
        uint64_t from, to, next_from, next_to;

        top_world_span(profile, &profile->cells[i], &from, &to);
        for (; i + n < profile->n_cells; n++) {
            top_world_span(profile, &profile->cells[i + n], &next_from, &next_to);
            if (next_from != from)
                break;
        }
        slice = top_world_slice(world, from, to);
        r = slice ? top_world_append(world, slice, &cells[i], n) : -ENOMEM;
    }
    if (!slice && world->n_slices > 0)
        slice = &world->slices[world->n_slices - 1];
    if (r == 0 && slice)
        slice->lost += profile->lost;
    return r;
}

int top_world_add(TopWorld *world, const Profile *profile, uint64_t complete_ns) {
    _cleanup_free_ ProfileCell *cells = NULL;
    int r = profile_merge_cells(&world->merge, profile, profile->cells, profile->n_cells, &cells);

    if (r == -ENOSPC) {
        r = top_world_renew(world);
        if (r == 0)
            r = profile_merge_cells(&world->merge, profile, profile->cells, profile->n_cells,
                                    &cells);
    }
    if (r == 0)
        r = top_world_place(world, profile, cells);
    if (r < 0)
        return r;
    world->merge.into->real_offset = profile->real_offset;
    world->merge.into->real_known = profile->real_known;
    world->end_ns = MAX(world->end_ns, complete_ns);
    if (world->begin_ns == 0)
        world->begin_ns =
            world->n_slices > 0 ? MIN(world->slices[0].from_ns, complete_ns) : complete_ns;
    return top_world_thin(world);
}

/* A sleep has no length on the clock of the samples, by which slices are cut. */
int top_world_note_gap(TopWorld *world, const PdGap *gap) {
    if (!pd_gap_counts(gap) || gap->reason == PD_GAP_ASLEEP)
        return 0;
    /* The stream has the gaps of a segment before its samples, when no begin is known yet. */
    world->gaps.from_ns = world->begin_ns;
    world->gaps.to_ns = UINT64_MAX;
    pd_coverage_clip(&world->gaps);
    return pd_coverage_add_gap(&world->gaps, gap);
}

static size_t top_world_gaps(const TopWorld *world, uint64_t since_ns, uint64_t until_ns) {
    size_t n = 0;

    for (size_t i = 0; i < world->gaps.n_gaps; i++)
        n += world->gaps.gaps[i].from_ns < until_ns && world->gaps.gaps[i].to_ns > since_ns;
    return n;
}

static void top_world_count(Profile *profile) {
    profile->samples = 0;
    for (size_t i = 0; i < profile->n_events; i++)
        profile->events[i].samples = profile->events[i].period = 0;
    for (size_t i = 0; i < profile->n_cells; i++) {
        const ProfileCell *cell = &profile->cells[i];
        uint32_t event = profile->labels[cell->label].values[PROFILE_EVENT];

        profile->samples += cell->samples;
        if (event < profile->n_events) {
            profile->events[event].samples += cell->samples;
            profile->events[event].period += cell->period;
        }
    }
}

int top_world_select(TopWorld *world, uint64_t since_ns, uint64_t until_ns) {
    Profile *profile = world->merge.into;
    ProfileCell *cells = malloc((world->n_cells + 1) * sizeof(*cells));
    size_t n = 0;

    if (!cells)
        return -ENOMEM;
    world->lost = 0;
    profile->first_ns = MAX(since_ns, world->begin_ns);
    profile->last_ns = MIN(until_ns, world->end_ns);
    world->n_gaps = top_world_gaps(world, profile->first_ns, profile->last_ns);
    world->recorded_ns = 0;
    if (profile->first_ns < profile->last_ns)
        world->recorded_ns =
            pd_coverage_recorded_on_any_ns(&world->gaps, profile->first_ns, profile->last_ns);
    for (size_t i = 0; i < world->n_slices; i++) {
        const TopSlice *slice = &world->slices[i];

        if (slice->to_ns <= since_ns || slice->to_ns > until_ns)
            continue;
        if (slice->n_cells > 0)
            memcpy(cells + n, slice->cells, slice->n_cells * sizeof(*cells));
        n += slice->n_cells;
        world->lost += slice->lost;
    }
    free(profile->cells);
    profile->cells = cells;
    profile->n_cells = profile_cells_unite(cells, n);
    profile->lost = world->lost;
    top_world_count(profile);
    return 0;
}
