/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export-cell.h"

#include <errno.h>
#include <stdlib.h>

#include "util/text.h"

/* Which cells count, and facts about the events and times that formats state beside them. */

enum { NS_PER_S = 1000000000 };

/* Sums of a few of them fit into an int64, as formats have it. */
static const double export_scaled_max = 1e18;

void export_cells_done(ExportCells *cells) {
    free(cells->items);
}

static bool export_cells_want(const ExportInput *input, uint32_t number) {
    uint32_t event = input->profile->labels[number].values[PROFILE_EVENT];

    if (input->part_of_label && input->part_of_label[number] == EXPORT_NO_PART)
        return false;
    return input->event == PROFILE_NONE || event == PROFILE_NONE || event == input->event;
}

static int export_cells_compare(const void *a, const void *b) {
    const ExportCell *x = a, *y = b;

    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->cell < y->cell ? -1 : x->cell > y->cell;
}

int export_cells_fill(ExportCells *cells, const ExportInput *input,
                      const uint32_t *group_of_label) {
    const Profile *profile = input->profile;

    cells->items = calloc(profile->n_cells + 1, sizeof(*cells->items));
    if (!cells->items)
        return -ENOMEM;
    for (size_t i = 0; i < profile->n_cells; i++) {
        uint32_t number = profile->cells[i].label;
        uint32_t time = profile->labels[number].values[PROFILE_TIME];
        uint64_t group = group_of_label ? group_of_label[number] : 0;

        if (export_cells_want(input, number))
            cells->items[cells->n++] = (ExportCell){
                .order = group << 32 | (time == PROFILE_NONE ? 0 : time), .cell = (uint32_t)i};
    }
    qsort(cells->items, cells->n, sizeof(*cells->items), export_cells_compare);
    return 0;
}

static size_t export_cells_begin(const ExportCells *cells, uint64_t group) {
    size_t low = 0, high = cells->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (export_cell_group(&cells->items[middle]) < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ExportCells export_cells_of_group(const ExportCells *cells, uint32_t group) {
    size_t begin = export_cells_begin(cells, group);
    size_t end = export_cells_begin(cells, (uint64_t)group + 1);

    return (ExportCells){.items = cells->items + begin, .n = end - begin};
}

static int export_cells_compare_samples(const void *a, const void *b, void *input) {
    const ExportCell *x = a, *y = b;
    uint64_t of_x = export_cell(input, x)->samples, of_y = export_cell(input, y)->samples;

    if (of_x != of_y)
        return of_x > of_y ? -1 : 1;
    return x->cell < y->cell ? -1 : x->cell > y->cell;
}

void export_cells_by_samples(const ExportCells *cells, const ExportInput *input) {
    if (cells->n > 1)
        qsort_r(cells->items, cells->n, sizeof(*cells->items), export_cells_compare_samples,
                (void *)input);
}

uint64_t export_scale(ExportScale *scale, uint64_t weight) {
    double sum = scale->rest + (double)weight * scale->factor;
    uint64_t whole;

    if (!(scale->factor > 1))
        return weight;
    whole = sum < export_scaled_max ? (uint64_t)sum : (uint64_t)export_scaled_max;
    scale->rest = sum < export_scaled_max ? sum - (double)whole : 0;
    return whole;
}

const ProfileEvent *export_event(const ExportInput *input, uint32_t number) {
    const Profile *profile = input->profile;

    if (number == PROFILE_NONE)
        number = input->event;
    if (number == PROFILE_NONE && profile->n_events == 1)
        number = 0;
    return number < profile->n_events ? &profile->events[number] : NULL;
}

uint64_t export_interval_ns(const ProfileEvent *event) {
    if (!event || event->rate == 0)
        return 0;
    if (!event->by_period)
        return NS_PER_S / event->rate;
    return event->is_time ? event->rate : 0;
}

uint64_t export_period(const ProfileEvent *event) {
    if (event->by_period && event->rate > 0)
        return event->rate;
    if (event->is_time && export_interval_ns(event) > 0)
        return export_interval_ns(event);
    return event->samples > 0 ? event->period / event->samples : 0;
}

void export_event_name(const Profile *profile, const ProfileEvent *event, Buffer *out) {
    Bytes name = text_set_get(profile->texts, event->name);

    for (size_t i = 0; i < name.size; i++) {
        char c = (char)name.data[i];
        bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        text_putc(out, kept ? c : '_');
    }
    if (name.size == 0)
        text_puts(out, "event");
}

void export_window(const ExportInput *input, uint64_t *ret_since_ns, uint64_t *ret_until_ns) {
    const Profile *profile = input->profile;
    bool any = profile->first_ns <= profile->last_ns;

    *ret_since_ns = any ? profile->first_ns : 0;
    *ret_until_ns = any ? profile->last_ns : 0;
    if (input->since_ns < input->until_ns) {
        *ret_since_ns = input->since_ns;
        *ret_until_ns = input->until_ns;
    }
}
