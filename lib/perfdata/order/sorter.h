/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PdSorter takes records in any order and gives them back by time (equal times in the order they
 * came). What does not fit its memory goes to sorted runs in an unlinked temporary file, so memory
 * is bounded even where a file has no rounds.
 */

#include "perfdata/event/record-view.h"
#include "util/macro.h"

/* Zero: the default, given here. */
typedef struct PdOrderOptions {
    uint64_t memory_bytes;    /* held before a run is spilled, 8 MiB */
    const char *spill_folder; /* $TMPDIR, else /var/tmp */
} PdOrderOptions;

typedef struct PdSorter PdSorter;

int pd_sorter_new(const PdOrderOptions *options, PdSorter **ret);
PdSorter *pd_sorter_free(PdSorter *sorter);
DEFINE_CLEANUP(PdSorter *, pd_sorter_free);
/* Copies the record. */
int pd_sorter_add(PdSorter *sorter, const PdRecord *record, uint64_t time);
/* From now on records of a time up to `limit` may be taken (UINT64_MAX: all). */
void pd_sorter_release(PdSorter *sorter, uint64_t limit);
/* 1, 0 when nothing (released) is left, negative errno. *ret is valid until the next call. */
int pd_sorter_next(PdSorter *sorter, PdRecord *ret, uint64_t *ret_time);
bool pd_sorter_spilled(const PdSorter *sorter);
