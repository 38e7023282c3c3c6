/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The parts of `verify`. Each looks at one thing and adds what it finds; none stops at the first
 * finding. Negative returns mean that the system failed, not that the recording is bad.
 */

#include "client/frame/finding.h"
#include "perfdata/reader/reader.h"

/* What lies where in the file: sections within its bounds, none over another. `path` is that of
 * a file or of a directory; a stream has no sections. */
/* 1: some end behind the file, which is one finding; 0: none does. */
int verify_sections(const char *path, const PdReader *reader, Findings *findings);

/* Each feature says what it announces. After the records, since a pipe has them only then. */
int verify_features(PdReader *reader, Findings *findings);

/* Which times its recorder says that it did not record. */
int verify_coverage(PdReader *reader, Findings *findings);

/* Ids lead to one event each. After the records likewise. */
void verify_events(PdReader *reader, bool truncated, Findings *findings);

/* Records one by one. An all-zero one is valid before the first. */
typedef struct RecordTally {
    uint64_t n;
    Place first;
    uint32_t type; /* of the first */
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

/* Which samples nobody can name or place. */
typedef struct SideBand SideBand;

int side_band_new(PdReader *reader, SideBand **ret);
SideBand *side_band_free(SideBand *side_band);
DEFINE_CLEANUP(SideBand *, side_band_free);
int side_band_add(SideBand *side_band, const PdRecord *record, const PdStamp *stamp);
int side_band_end(SideBand *side_band, Findings *findings);
