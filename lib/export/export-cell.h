/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The cells of a profile that are exported, in an order that suits the format. */

#include "export/export.h"
#include "util/buffer.h"

typedef struct ExportCell {
    uint64_t order; /* what it is sorted by: a group of the format's own, then time */
    uint32_t cell;  /* its number in the profile */
} ExportCell;

typedef struct ExportCells {
    ExportCell *items;
    size_t n;
} ExportCells;

void export_cells_done(ExportCells *cells);
/* The cells of the event that are of a part, by group and time. group_of_label NULL: there is one
 * group. */
int export_cells_fill(ExportCells *cells, const ExportInput *input, const uint32_t *group_of_label);

/* Which cells of a group there are, in cells that were filled with groups. */
ExportCells export_cells_of_group(const ExportCells *cells, uint32_t group);
/* Puts cells of one group in order of their samples, the most first. */
void export_cells_by_samples(const ExportCells *cells, const ExportInput *input);

/* Multiplies weights; what rounding leaves is carried over to the next one, so that sums are right.
 * A zeroed one with a factor is valid. */
typedef struct ExportScale {
    double factor, rest;
} ExportScale;

uint64_t export_scale(ExportScale *scale, uint64_t weight);

static inline uint32_t export_cell_group(const ExportCell *cell) {
    return (uint32_t)(cell->order >> 32);
}

static inline const ProfileCell *export_cell(const ExportInput *input, const ExportCell *cell) {
    return &input->profile->cells[cell->cell];
}

static inline const ProfileLabel *export_cell_label(const ExportInput *input,
                                                    const ExportCell *cell) {
    return &input->profile->labels[export_cell(input, cell)->label];
}

static inline uint64_t export_cell_weight(const ExportInput *input, const ExportCell *cell) {
    return input->by_period ? export_cell(input, cell)->period : export_cell(input, cell)->samples;
}

/* The event whose rate and unit are those of the weights; NULL: there are several. */
const ProfileEvent *export_event(const ExportInput *input, uint32_t number);
/* The period of sampling in units of the event: the fixed one, or on average. */
uint64_t export_period(const ProfileEvent *event);
/* The event's name with letters, digits and _ alone, as engines name series by it. */
void export_event_name(const Profile *profile, const ProfileEvent *event, Buffer *out);
/* Nanoseconds between two samples by the event's rate, 0: not known. */
uint64_t export_interval_ns(const ProfileEvent *event);
/* When the window begins and ends, in the clock of the input; both 0 for a profile without samples.
 */
void export_window(const ExportInput *input, uint64_t *ret_since_ns, uint64_t *ret_until_ns);
