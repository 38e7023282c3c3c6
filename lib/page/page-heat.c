/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "page/page-heat.h"

#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"

/*
 * Nodes that have samples of their own get numbers by how many they have, so that frequent stacks
 * have small ones ("ranks": their places in preorder). Then for each span that has samples: how
 * many empty spans are before it, how many stacks it has, and its stacks in order: the distance to
 * the one before, doubled, plus one if a number of samples follows, which else is 1.
 * A browser has an array of all spans, also of empty ones, so spans are joined where samples lie
 * far apart: a part of a second first, then whole seconds.
 * Where the wall clock is known, spans are counted from the second of the clock that the first one
 * lies in, so that a column of the map is a second of the clock.
 */

enum { BUCKETS_MAX = 10000000, COLUMNS_MAX = 1000000 /* of whole seconds */ };

typedef struct HeatCell {
    uint32_t bucket, rank;
    uint64_t samples;
} HeatCell;

typedef struct HeatNode {
    uint64_t samples;
    uint32_t place;
} HeatNode;

static int page_heat_node_order(const void *a, const void *b) {
    const HeatNode *x = a, *y = b;

    return x->samples != y->samples ? (x->samples < y->samples) - (x->samples > y->samples)
                                    : (x->place > y->place) - (x->place < y->place);
}

static int page_heat_cell_order(const void *a, const void *b) {
    const HeatCell *x = a, *y = b;

    return x->bucket != y->bucket ? (x->bucket > y->bucket) - (x->bucket < y->bucket)
                                  : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Writes "ranks", and returns for each place in preorder its rank. */
static int page_heat_ranks(PageWriter *w, const PageTree *tree, uint32_t **ret) {
    uint32_t n = stack_tree_n_nodes(tree->stacks), used = 0;
    _cleanup_free_ HeatNode *nodes = calloc(n, sizeof(*nodes));
    _cleanup_free_ uint32_t *ranks = calloc(n, sizeof(*ranks));

    if (!nodes || !ranks)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t samples = tree->weights[tree->order[i]].samples;

        if (samples > 0)
            nodes[used++] = (HeatNode){.samples = samples, .place = i};
    }
    qsort(nodes, used, sizeof(*nodes), page_heat_node_order);
    page_json_u64(w, "n_ranks", used);
    page_puts(w, "\"ranks\":\"");
    for (uint32_t i = 0; i < used; i++) {
        ranks[nodes[i].place] = i;
        page_digits(w, nodes[i].place);
    }
    page_puts(w, "\",\n");
    *ret = TAKE_PTR(ranks);
    return 0;
}

/* How many spans lie between the begin of the clock's second and that of the first span. */
static uint32_t page_heat_lead(const Profile *profile) {
    uint64_t begin = profile->start_ns + profile->real_offset;

    return profile->real_known ? (uint32_t)(begin % NS_PER_SECOND / profile->bucket_ns) : 0;
}

/* How many spans become one. */
static uint32_t page_heat_step(const Profile *profile, uint64_t n_buckets) {
    uint32_t second = (uint32_t)MAX(NS_PER_SECOND / profile->bucket_ns, UINT64_C(1));

    for (uint32_t step = 1; step < second; step++)
        if (second % step == 0 && n_buckets / step < BUCKETS_MAX)
            return step;
    return second * (uint32_t)(n_buckets / second / COLUMNS_MAX + 1);
}

/* Sorted, each pair of span and rank once. */
static size_t page_heat_collect(const PageInput *input, const PageTree *tree, const uint32_t *ranks,
                                HeatCell *cells, uint32_t *ret_step) {
    const Profile *profile = input->profile;
    uint64_t n_buckets = 0, lead = page_heat_lead(profile);
    uint32_t step;
    size_t n = 0, kept = 0;

    for (size_t i = 0; i < profile->n_cells; i++) {
        const ProfileCell *cell = &profile->cells[i];
        uint32_t bucket = profile->labels[cell->label].values[PROFILE_TIME];

        if (!page_input_selects(input, cell) || bucket == PROFILE_NONE || cell->samples == 0)
            continue;
        cells[n++] = (HeatCell){.bucket = bucket,
                                .rank = ranks[tree->rank[tree->cell_nodes[i]]],
                                .samples = cell->samples};
        n_buckets = MAX(n_buckets, lead + bucket + 1);
    }
    *ret_step = step = page_heat_step(profile, n_buckets);
    for (size_t i = 0; i < n; i++)
        cells[i].bucket = (uint32_t)((lead + cells[i].bucket) / step);
    qsort(cells, n, sizeof(*cells), page_heat_cell_order);
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && cells[kept - 1].bucket == cells[i].bucket &&
            cells[kept - 1].rank == cells[i].rank)
            cells[kept - 1].samples += cells[i].samples;
        else
            cells[kept++] = cells[i];
    return kept;
}

static void page_heat_bucket(PageWriter *w, const HeatCell *cells, size_t n, uint32_t gap) {
    uint32_t next = 0;

    page_digits(w, gap);
    page_digits(w, n);
    for (size_t i = 0; i < n; i++) {
        page_digits(w, (uint64_t)(cells[i].rank - next) << 1 | (cells[i].samples > 1));
        if (cells[i].samples > 1)
            page_digits(w, MIN(cells[i].samples, PAGE_WEIGHT_MAX));
        next = cells[i].rank + 1;
    }
}

int page_heat_write(PageWriter *w, const PageInput *input, const PageTree *tree) {
    const Profile *profile = input->profile;
    _cleanup_free_ HeatCell *cells = calloc(profile->n_cells + 1, sizeof(*cells));
    _cleanup_free_ uint32_t *ranks = NULL;
    uint64_t lead_ns = page_heat_lead(profile) * profile->bucket_ns;
    uint32_t next = 0, n_buckets = 0, step;
    size_t n;
    int r;

    if (!cells)
        return -ENOMEM;
    page_puts(w, "\"heat\":{");
    r = page_heat_ranks(w, tree, &ranks);
    if (r < 0)
        return r;
    n = page_heat_collect(input, tree, ranks, cells, &step);
    page_json_u64(w, "bucket_ns", profile->bucket_ns * step);
    if (profile->real_known) {
        page_json_u64(w, "real_ms", (profile->start_ns + profile->real_offset - lead_ns) / 1000000);
        page_puts(w, input->zone_min < 0 ? "\"zone_min\":-" : "\"zone_min\":");
        page_u64(w, (uint64_t)abs(input->zone_min));
        page_puts(w, ",");
    }
    page_json_u64(w, "start_ms", (profile->start_ns - MIN(lead_ns, profile->start_ns)) / 1000000);
    page_puts(w, "\"cells\":\"");
    for (size_t i = 0, end; i < n; i = end, n_buckets++) {
        for (end = i + 1; end < n && cells[end].bucket == cells[i].bucket;)
            end++;
        page_heat_bucket(w, cells + i, end - i, cells[i].bucket - next);
        next = cells[i].bucket + 1;
    }
    page_puts(w, "\",");
    page_json_u64(w, "n_filled", n_buckets);
    page_puts(w, "\"n_buckets\":");
    page_u64(w, next);
    page_puts(w, "},\n");
    return 0;
}
