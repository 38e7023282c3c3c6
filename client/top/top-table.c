/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/top/top-table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"
#include "util/clock.h"
#include "util/text.h"

/*
 * Rows of lib/profile become lines of text, all of them, so that the filter and the zoom work on
 * what is seen. Both are found again by text after each refresh, since numbers of rows change.
 */

enum { TREE_LINES_MAX = 2000, TREE_SHARE_MIN = 200, TREE_DEPTH_MAX = 256 };

const TopWindow top_windows[] = {
    {1, "now"},     {5, "5 s"},      {10, "10 s"},  {30, "30 s"}, {60, "1 min"},
    {300, "5 min"}, {900, "15 min"}, {3600, "1 h"}, {},
};

void top_table_done(TopTable *table) {
    free(table->lines);
    buffer_done(&table->text);
    *table = (TopTable){.event = PROFILE_NONE};
}

const char *top_table_cell(const TopTable *table, const TopLine *line, size_t key) {
    return (const char *)table->text.data + line->cells[key];
}

Bytes top_line_text(const TopTable *table, const TopLine *line) {
    const char *first = top_table_cell(table, line, 0),
               *last = top_table_cell(table, line, table->keys.n - 1);

    return (Bytes){.data = (const uint8_t *)first,
                   .size = (size_t)(last - first) + strlen(last) + 1};
}

static void top_table_put_cell(TopTable *table, TopLine *line, size_t key, Bytes text) {
    static const char unknown[] = "-";

    line->cells[key] = (uint32_t)table->text.size;
    if (text.size > 0)
        text_escape(&table->text, text);
    else
        text_puts(&table->text, unknown);
    text_putc(&table->text, '\0');
}

static bool top_line_matches(const TopTable *table, const TopLine *line, const char *filter) {
    if (!*filter)
        return true;
    for (size_t i = 0; i < table->keys.n; i++)
        if (strcasestr(top_table_cell(table, line, i), filter))
            return true;
    return false;
}

static double top_share(uint64_t part, uint64_t all) {
    return all > 0 ? (double)part / (double)all : 0;
}

/* Appends the line of a row, unless the filter leaves it out. */
static int top_table_add_row(TopTable *table, const RowTable *rows, const ProfileRow *row,
                             const TopChoice *choice, Buffer *value) {
    size_t text = table->text.size;
    TopLine *line = array_grow(&table->lines, &table->n);
    uint64_t all = choice->by_period ? rows->period : rows->samples;

    if (!line)
        return -ENOMEM;
    line->self = top_share(choice->by_period ? row->period : row->samples, all);
    line->total = top_share(choice->by_period ? row->total_period : row->total_samples, all);
    line->samples = row->samples;
    for (size_t i = 0; i < rows->keys.n; i++) {
        buffer_clear(value);
        row_table_put(rows, row, rows->keys.items[i], value);
        top_table_put_cell(table, line, i, buffer_bytes(value));
    }
    if (buffer_error(&table->text) || buffer_error(value))
        return -ENOMEM;
    if (top_line_matches(table, line, choice->filter))
        return 0;
    table->text.size = text;
    table->n--;
    table->n_hidden++;
    return 0;
}

static int top_table_add_rows(TopTable *table, const RowTable *rows, const TopChoice *choice) {
    _cleanup_(buffer_done) Buffer value = {};
    int r = 0;

    for (size_t i = 0; i < rows->n && table->n < TOP_LINES_MAX && r == 0; i++)
        r = top_table_add_row(table, rows, &rows->rows[rows->order[i]], choice, &value);
    return r;
}

/* The number of the row that was zoomed into; UINT32_MAX: it is not there now. */
static uint32_t top_table_find_zoomed(const TopTable *table, const RowTable *rows,
                                      const TopChoice *choice) {
    for (size_t i = 0; i < table->n; i++)
        if (bytes_equal(top_line_text(table, &table->lines[i]), choice->zoomed))
            return rows->order[i];
    return UINT32_MAX;
}

static int top_table_add_node(TopTable *table, const TopWorld *world, const ProfileTree *tree,
                              uint32_t number, uint32_t depth, uint64_t all, bool by_period) {
    const TreeNode *node = &tree->nodes[number];
    TopLine *line = array_grow(&table->lines, &table->n);

    if (!line)
        return -ENOMEM;
    line->samples = node->samples;
    line->total = top_share(by_period ? node->period : node->samples, all);
    line->depth = depth;
    top_table_put_cell(table, line, 0, text_set_get(world->names->texts, node->function));
    return buffer_error(&table->text);
}

/* The tree as lines: each node before its children, small branches left out. */
static int top_table_add_tree(TopTable *table, const TopWorld *world, const RowTable *rows,
                              const ProfileTree *tree, uint32_t root, bool by_period) {
    uint64_t all = by_period ? rows->period : rows->samples;
    uint32_t at = tree->nodes[root].child, depth = 0;
    int r = 0;

    while (at != UINT32_MAX && at != root && table->n < TREE_LINES_MAX && r == 0) {
        const TreeNode *node = &tree->nodes[at];
        uint64_t weight = by_period ? node->period : node->samples;
        bool is_shown = weight >= all / TREE_SHARE_MIN && weight > 0;

        if (is_shown)
            r = top_table_add_node(table, world, tree, at, depth, all, by_period);
        if (is_shown && node->child != UINT32_MAX && depth < TREE_DEPTH_MAX) {
            at = node->child;
            depth++;
            continue;
        }
        while (at != root && tree->nodes[at].next == UINT32_MAX) {
            at = tree->nodes[at].parent;
            depth--;
        }
        at = at == root ? at : tree->nodes[at].next;
    }
    return r;
}

static int top_table_zoom(TopTable *table, const TopWorld *world, RowTable *rows,
                          const TopChoice *choice) {
    _cleanup_(profile_tree_freep) ProfileTree *tree = NULL;
    _cleanup_free_ uint8_t *chosen = calloc(rows->n + 1, 1);
    uint32_t row = top_table_find_zoomed(table, rows, choice);
    int r = 0;

    table->n = 0;
    table->n_hidden = 0;
    buffer_clear(&table->text);
    table->has_zoom = row != UINT32_MAX;
    if (!chosen)
        return -ENOMEM;
    if (!table->has_zoom)
        return 0;
    chosen[row] = 1;
    r = profile_tree_new(rows, choice->direction, chosen, &tree);
    if (r == 0)
        r = profile_tree_sort(tree, world->names, choice->by_period);
    if (r < 0 || tree->roots[row] == UINT32_MAX)
        return r;
    return top_table_add_tree(table, world, rows, tree, tree->roots[row], choice->by_period);
}

/* The n-th event by the number of its samples. */
static uint32_t top_table_event(const Profile *profile, unsigned n, unsigned *ret_n) {
    uint32_t found = PROFILE_NONE, last = PROFILE_NONE;

    *ret_n = 0;
    for (uint32_t i = 0; i < profile->n_events; i++)
        *ret_n += profile->events[i].samples > 0;
    for (unsigned k = 0; *ret_n > 0 && k <= n % *ret_n; k++) {
        last = found;
        found = PROFILE_NONE;
        for (uint32_t i = 0; i < profile->n_events; i++) {
            const ProfileEvent *events = profile->events;
            bool is_later = last == PROFILE_NONE || events[i].samples < events[last].samples ||
                            (events[i].samples == events[last].samples && i > last);

            if (events[i].samples > 0 && is_later &&
                (found == PROFILE_NONE || events[i].samples > events[found].samples))
                found = i;
        }
    }
    return found;
}

static void top_table_state(TopTable *table, const TopWorld *world, const RowTable *rows) {
    const Profile *profile = world->merge.into;
    const ProfileEvent *event = &profile->events[table->event];
    _cleanup_(buffer_done) Buffer name = {};

    text_escape(&name, text_set_get(profile->texts, event->name));
    text_putc(&name, '\0');
    if (!buffer_error(&name))
        snprintf(table->event_name, sizeof(table->event_name), "%s", (const char *)name.data);
    table->samples = rows->samples;
    if (event->is_time && table->window_s > 0)
        table->cpus = (double)rows->period / (double)NS_PER_SECOND / table->window_s;
}

int top_table_fill(TopTable *table, const TopWorld *world, const TopChoice *choice) {
    const Profile *profile = world->merge.into;
    _cleanup_(row_table_freep) RowTable *rows = NULL;
    TopChoice all = *choice;
    int r;

    top_table_done(table);
    table->keys = choice->keys;
    table->lost = world->lost;
    table->n_gaps = world->n_gaps;
    table->window_s = (double)world->recorded_ns / (double)NS_PER_SECOND;
    table->event = top_table_event(profile, choice->event, &table->n_events);
    if (table->event == PROFILE_NONE)
        return 0;
    /* A zoom is found among all rows. */
    if (choice->is_zoomed)
        all.filter[0] = '\0';
    r = row_table_new(profile, world->names, &choice->keys, table->event, &rows);
    if (r == 0)
        r = row_table_sort(rows, choice->sort, choice->by_period);
    if (r == 0)
        r = top_table_add_rows(table, rows, &all);
    if (r == 0)
        top_table_state(table, world, rows);
    if (r == 0 && choice->is_zoomed)
        r = top_table_zoom(table, world, rows, choice);
    if (r < 0)
        table->n = 0;
    return r;
}
