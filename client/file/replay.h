/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Replays a recording: its side-band goes into a process table in order of time, and each sample is
 * passed on when the table is in the state of the sample's time.
 */

#include "perfdata/reader/reader.h"
#include "process/table/table.h"

typedef struct ReplaySample {
    uint32_t pid, tid; /* UINT32_MAX if the sample has none */
    uint64_t ip;       /* 0 if the sample has none */
    unsigned cpumode;
} ReplaySample;

typedef int (*ReplaySink)(ProcessTable *table, const ReplaySample *sample, void *arg);

typedef struct Replay Replay;

/* `limits` are those of the table (NULL: the defaults). The reader must outlive the replay; nothing
 * may have been read from it. A negative return value of the sink ends the replay. */
int replay_new(PdReader *reader, const ProcessLimits *limits, ReplaySink sink, void *arg,
               Replay **ret);
Replay *replay_free(Replay *replay);
DEFINE_CLEANUP(Replay *, replay_free);

/* Adds each record as it is read, with its stamp. */
int replay_add(Replay *replay, const PdRecord *record, const PdStamp *stamp);
/* Call it after the last record. */
int replay_finish(Replay *replay);

ProcessTable *replay_table(Replay *replay);
