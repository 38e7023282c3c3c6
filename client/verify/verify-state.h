/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The parts of `verify`. Each checks one thing and adds its findings; none stops at the first one.
 * Negative return values mean that the system failed, not that the recording is bad.
 */

#include "client/frame/finding.h"
#include "perfdata/reader/reader.h"

/* Checks the positions in the file: sections within its bounds, without overlaps. `path` is a file
 * or a directory; a stream has no sections. */
/* 1: some sections end after the file, which is one finding; 0: none does. */
int verify_sections(const char *path, const PdReader *reader, Findings *findings);

/* Checks that each feature is valid. Call it after the records, because a pipe has features only
 * then. */
int verify_features(PdReader *reader, Findings *findings);

/* Reports the times that the recorder says it did not record. */
int verify_coverage(PdReader *reader, Findings *findings);

/* Checks that ids identify one event each. Also after the records. */
void verify_events(PdReader *reader, bool truncated, Findings *findings);

/* Checks records one by one. A zeroed struct is valid before the first one. */
typedef struct RecordTally {
    uint64_t n;
    Place first;
    uint32_t type; /* type of the first one */
} RecordTally;

typedef struct RecordChecks {
    uint64_t records, samples;
    RecordTally misaligned, too_short, broken, unknown_type, no_event, late, no_time, no_build_id;
    uint64_t lost_events, lost_samples, throttled;
    bool has_time;
    uint64_t first_ns, last_ns; /* of samples */
    uint64_t greatest_ns, at_end_ns, promised_ns;
    uint64_t n_auxtrace;
} RecordChecks;

void verify_record(RecordChecks *checks, const PdReader *reader, const PdRecord *record,
                   const PdStamp *stamp, int stamped);
int verify_records_end(const RecordChecks *checks, PdReader *reader, Findings *findings);

/* Finds samples without a name or a mapping. */
typedef struct SideBand SideBand;

int side_band_new(PdReader *reader, SideBand **ret);
SideBand *side_band_free(SideBand *side_band);
DEFINE_CLEANUP(SideBand *, side_band_free);
int side_band_add(SideBand *side_band, const PdRecord *record, const PdStamp *stamp);
int side_band_end(SideBand *side_band, Findings *findings);
