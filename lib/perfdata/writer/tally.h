/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the records of a recording say about it as a whole: their number, the time span of the
 * samples, the build ids of mapped files. The features SAMPLE_TIME and BUILD_ID are made from it.
 * Memory is bounded: at most 65,536 different build ids and as many mappings without one are kept.
 */

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct PdTally PdTally;

typedef struct PdTallyTotals {
    uint64_t records, samples;
    bool has_times; /* some sample had a time */
    uint64_t first_sample_time, last_sample_time;
    uint64_t round_time; /* of the last sample before the last FINISHED_ROUND */
    size_t n_build_ids;
    size_t n_unidentified; /* files with a mapping whose name ends with PD_NO_BUILD_ID and that is
                            * not repeated with a build id */
    bool build_ids_full;   /* some build ids were not kept */
} PdTallyTotals;

int pd_tally_new(PdTally **ret);
PdTally *pd_tally_free(PdTally *tally);
DEFINE_CLEANUP(PdTally *, pd_tally_free);

/* Adds a record of a recording with these events. It fails only for lack of memory; an invalid
 * record is only counted. */
int pd_tally_add(PdTally *tally, const PdEvents *events, const PdRecord *record);
/* Adds samples with times in this range. */
void pd_tally_add_samples(PdTally *tally, uint64_t samples, uint64_t first, uint64_t last);
PdTallyTotals pd_tally_totals(const PdTally *tally);
/* Body of the BUILD_ID feature; empty if there was no build id. */
void pd_tally_encode_build_ids(const PdTally *tally, Buffer *out, bool swap);
