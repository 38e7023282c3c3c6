/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "export/export-cell.h"

#include <errno.h>
#include <stdlib.h>

/* Which cells count, and facts about the events and times that formats state beside them. */

enum { NS_PER_S = 1000000000 };

void export_cells_done(ExportCells *cells) {
    free(cells->items);
}

static bool export_cells_want(const ExportInput *input, const ProfileLabel *label) {
    uint32_t event = label->values[PROFILE_EVENT];

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
        const ProfileLabel *label = &profile->labels[number];
        uint32_t time = label->values[PROFILE_TIME];
        uint64_t group = group_of_label ? group_of_label[number] : 0;

        if (export_cells_want(input, label))
            cells->items[cells->n++] = (ExportCell){
                .order = group << 32 | (time == PROFILE_NONE ? 0 : time), .cell = (uint32_t)i};
    }
    qsort(cells->items, cells->n, sizeof(*cells->items), export_cells_compare);
    return 0;
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
