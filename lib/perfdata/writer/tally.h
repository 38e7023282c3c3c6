/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the records of a recording tell about it as a whole: how many there are, the span of the
 * samples' times, the build ids of what was mapped. From it come the features SAMPLE_TIME and
 * BUILD_ID. Memory is bounded: build ids beyond 65,536 different ones are not kept.
 */

#include "perfdata/event/event.h"
#include "perfdata/record/record.h"
#include "util/buffer.h"

typedef struct PdTally PdTally;

typedef struct PdTallyTotals {
    uint64_t records, samples;
    bool has_times; /* a sample had a time */
    uint64_t first_sample_time, last_sample_time;
    uint64_t round_time; /* of the last sample before the last FINISHED_ROUND */
    size_t n_build_ids;
    size_t n_unidentified; /* files that a mapping names with PD_NO_BUILD_ID */
    bool build_ids_full;   /* some were not kept */
} PdTallyTotals;

int pd_tally_new(PdTally **ret);
PdTally *pd_tally_free(PdTally *tally);
DEFINE_CLEANUP(PdTally *, pd_tally_free);

/* A record of a recording with these events. Only memory fails; a record that makes no sense is
 * counted and no more. */
int pd_tally_add(PdTally *tally, const PdEvents *events, const PdRecord *record);
/* So many samples whose times lie between these. */
void pd_tally_add_samples(PdTally *tally, uint64_t samples, uint64_t first, uint64_t last);
PdTallyTotals pd_tally_totals(const PdTally *tally);
/* Body of the BUILD_ID feature; nothing when no build id was seen. */
void pd_tally_encode_build_ids(const PdTally *tally, Buffer *out, bool swap);
