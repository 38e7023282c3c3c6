/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PdSorter takes records in any order and returns them by time (equal times in the order of
 * arrival). Records that do not fit into its memory go to sorted runs in an unlinked temporary
 * file, so memory is bounded even if a file has no rounds.
 */

#include "perfdata/event/record-view.h"
#include "util/macro.h"

/* Zero means the default given here. */
typedef struct PdOrderOptions {
    uint64_t memory_bytes;    /* how much is kept before a run is written, 8 MiB */
    const char *spill_folder; /* default: $TMPDIR, else /var/tmp */
} PdOrderOptions;

typedef struct PdSorter PdSorter;

int pd_sorter_new(const PdOrderOptions *options, PdSorter **ret);
PdSorter *pd_sorter_free(PdSorter *sorter);
DEFINE_CLEANUP(PdSorter *, pd_sorter_free);
/* Copies the record. */
int pd_sorter_add(PdSorter *sorter, const PdRecord *record, uint64_t time);
/* Records up to time `limit` can be taken from now on (UINT64_MAX: all). */
void pd_sorter_release(PdSorter *sorter, uint64_t limit);
/* 1; 0 when no released record is left; a negative errno. *ret is valid until the next call. */
int pd_sorter_next(PdSorter *sorter, PdRecord *ret, uint64_t *ret_time);
bool pd_sorter_spilled(const PdSorter *sorter);
